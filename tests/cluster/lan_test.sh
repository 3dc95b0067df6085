#!/usr/bin/env bash
# scripts/lan: limits are enforced, exit statuses are forwarded, and nothing remains. Skipped (77)
# without root or if a LAN is already up, since that one must not be disturbed.
set -euo pipefail

lan=$(dirname "$0")/../../scripts/lan

skip() {
  echo "skipped: $1"
  exit 77
}

fail() {
  echo "FAILED: $1"
  exit 1
}

leftovers() {
  find /run/netns /sys/fs/cgroup /run/motley-lan -maxdepth 2 \
    \( -name 'motley-m[0-9]*' -o -name motley-sw -o -name motley-air -o -name motley-echo -o -path '*/motley-lan*' \) 2>/dev/null || true
}

[[ $(id -u) == 0 ]] || skip "network namespaces need root"
command -v ip tc >/dev/null || skip "ip and tc are missing: apt-get install iproute2"
unshare --net true 2>/dev/null || skip "this system does not allow network namespaces"
[[ ! -e /run/netns/motley-sw ]] || skip "a LAN is up already"

trap '"$lan" down' EXIT

"$lan" up -n 2 --mbps 0 2>/dev/null && fail "a rate of 0 was accepted"
[[ -z $(leftovers) ]] || fail "a refused 'up' left $(leftovers)"

"$lan" up -n 2 --mbps 100 --cpu 1,0.00001 2>/dev/null && fail "a share of 0.00001 was accepted"
[[ -z $(leftovers) ]] || fail "an 'up' that failed half-way left $(leftovers)"

shares=()
[[ ! -f /sys/fs/cgroup/cpu/cgroup.procs ]] || shares=(--cpu "1,0.5")
"$lan" up -n 2 --mbps 100 "${shares[@]}"
"$lan" up 2>/dev/null && fail "a second 'up' was accepted"

status=0
"$lan" exec m1 sh -c 'exit 7' || status=$?
[[ $status == 7 ]] || fail "exec gave status $status, not 7"
"$lan" exec m3 true 2>/dev/null && fail "exec on a machine that is not there was accepted"

if ((${#shares[@]})); then
  "$lan" exec m2 grep -q '/motley-m2$' /proc/self/cgroup || fail "m2 does not hold its processes"
  "$lan" status | grep -q 'm2 .* cores 0.5' || fail "status does not show the share of m2"
fi
ip netns exec motley-m1 tc qdisc show dev eth0 | grep -q 'tbf.*rate 100Mbit' ||
  fail "the uplink of m1 is not shaped"

# 'down' must end this process.
coproc "$lan" exec m1 sh -c 'echo $$; exec sleep 1000'
read -r pid <&"${COPROC[0]}"
"$lan" down
[[ ! -e /proc/$pid ]] || grep -q 'State:.Z' "/proc/$pid/status" || fail "process $pid is left"
[[ -z $(leftovers) ]] || fail "'down' left $(leftovers)"
"$lan" down || fail "a second 'down' failed"

"$lan" up -n 2 --mbps 100 --wifi m3x 2>/dev/null && fail "--wifi m3x was accepted"
"$lan" up -n 2 --mbps 100 --wifi m2
ip netns exec motley-air tc qdisc show dev out | grep -q 'tbf.*rate 100Mbit' ||
  fail "the air is not shaped"
"$lan" down
[[ -z $(leftovers) ]] || fail "'down' left $(leftovers)"
echo "passed"
