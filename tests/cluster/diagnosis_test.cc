// Each test starts with two healthy machines and changes one property.
#include "cluster/diagnose/diagnosis.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kGib = std::int64_t{1} << 30;

class Diagnosing : public testing::Test {
 protected:
  Diagnosing() {
    inspection.version = "1.0";
    inspection.build = "abc";
    for (int i = 0; i < 2; ++i) {
      Machine& machine = cluster.machines.emplace_back();
      machine.name = i == 0 ? "desk" : "box";
      machine.address = i == 0 ? "10.0.0.1" : "10.0.0.2";
      if (i == 1) machine.shell = {"ssh", "box"};
      MachineFacts& facts = inspection.machines.emplace_back().facts.emplace();
      facts.version = "1.0";
      facts.build = "abc";
      facts.blas = "/usr/lib/openblas-pthread/libblas.so.3";
      facts.transports = {"tcp", "ucx"};
      facts.found.devices = {{.name = "cpu"}};
      facts.cores = 4;
      facts.physical_cores = 2;
      facts.memory_bytes = 8 * kGib;
      facts.disk_bytes = 100 * kGib;
      facts.sees_mark_file = true;
      facts.candidates = {{"lo", "127.0.0.1", "loopback", true, 0},
                          {"eth0", machine.address, "wired", true, 1000},
                          {"docker0", "172.17.0.1", "bridge", true, 0}};
      facts.routes = {{i == 0 ? "10.0.0.2" : "10.0.0.1", machine.address}};
    }
    inspection.links.emplace();
    inspection.links->links = {{"desk", "box", cluster.network, 0},
                               {"box", "desk", cluster.network, 0}};
  }

  MachineFacts& desk() { return *inspection.machines[0].facts; }

  Diagnosis diagnosed() { return diagnose(cluster, comm, inspection); }

  // The worst finding of that check; kOk if there is none.
  Finding worst(const std::string& check) {
    Finding worst;
    for (const Finding& finding : diagnosed().findings) {
      if (finding.check == check && finding.level > worst.level) worst = finding;
    }
    return worst;
  }

  // The text of the first finding of that check, good or bad.
  std::string said(const std::string& check) {
    const auto all = diagnosed().findings;
    const auto found = std::ranges::find(all, check, &Finding::check);
    return found == all.end() ? "" : found->what;
  }

  // The judgement of that address of desk.
  AssessedAddress assessed(const std::string& address) {
    const auto all = diagnosed().addresses;
    const auto found = std::ranges::find_if(all, [&](const AssessedAddress& each) {
      return each.machine == "desk" && each.address == address;
    });
    return found == all.end() ? AssessedAddress{} : *found;
  }

  Cluster cluster;
  CommConfig comm;
  Inspection inspection;
};

TEST_F(Diagnosing, FindsNothingWhereAllIsWell) {
  const Diagnosis diagnosis = diagnosed();
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_EQ(finding.level, FindingLevel::kOk) << finding.check << ": " << finding.what;
  }
  ASSERT_EQ(diagnosis.pairs.size(), 1U);
  EXPECT_EQ(diagnosis.pairs[0].transport, "tcp with TLS");
  EXPECT_THAT(diagnosis.pairs[0].why, HasSubstr("not declared trusted"));
}

TEST_F(Diagnosing, NamesTheMachineThatDoesNotAnswerAndItsStatus) {
  inspection.machines[1].facts.reset();
  inspection.machines[1].failure =
      Error{ErrorCode::kPeer, "box: ssh could not connect", "No route to host", "turn it on"};
  inspection.links.reset();
  const Finding finding = worst("start");
  EXPECT_EQ(finding.level, FindingLevel::kProblem);
  EXPECT_EQ(finding.subject, "box");
  EXPECT_EQ(finding.code, ErrorCode::kPeer);
  EXPECT_THAT(finding.what, HasSubstr("No route to host"));
  EXPECT_EQ(finding.remedy, "turn it on");
  EXPECT_TRUE(diagnosed().pairs.empty());
}

TEST_F(Diagnosing, SaysWhichMachinesAreOneComputer) {
  for (InspectedMachine& machine : inspection.machines) {
    machine.facts->computer = "one";
    machine.facts->computer_memory_bytes = 8 * kGib;
  }
  EXPECT_EQ(worst("computer").level, FindingLevel::kNote);
  EXPECT_EQ(worst("computer").what,
            "desk, box are one computer with 8.00 GiB of free memory; 2 workers share its 4 cores");
  for (Machine& machine : cluster.machines) machine.memory_gib = 5;
  EXPECT_EQ(worst("memory").level, FindingLevel::kOk);
  EXPECT_EQ(worst("computer").level, FindingLevel::kWarning);
  EXPECT_THAT(worst("computer").what, HasSubstr("10.00 GiB that memory_gib grants"));
  inspection.machines[1].facts->computer = "another";
  EXPECT_EQ(said("computer"), "");
}

TEST_F(Diagnosing, RefusesAnotherVersionAndNotesAnotherBuild) {
  desk().build = "abd";
  EXPECT_EQ(worst("version").level, FindingLevel::kNote);
  desk().version = "1.1";
  EXPECT_EQ(worst("version").level, FindingLevel::kProblem);
  EXPECT_EQ(worst("version").code, ErrorCode::kPeer);
}

TEST_F(Diagnosing, RefusesADeviceThatCannotCompute) {
  cluster.machines[0].devices = {"cpu", "cuda:0"};
  EXPECT_THAT(worst("devices").what, HasSubstr("cuda:0"));
  EXPECT_EQ(worst("devices").code, ErrorCode::kConfig);
}

TEST_F(Diagnosing, CountsThreadsOfAllDevicesAgainstTheCores) {
  cluster.machines[0].devices = {"cpu", "cpu"};
  cluster.machines[0].threads = 2;
  EXPECT_EQ(worst("cores").level, FindingLevel::kOk);
  desk().cores = 3.5;
  EXPECT_EQ(worst("cores").level, FindingLevel::kWarning);
}

TEST_F(Diagnosing, SaysHowManyCoresAreUsedAndLeft) {
  EXPECT_EQ(said("cores"),
            "4 usable, 2 physical: 1 process of 2 threads (run.threads changes that)");
  cluster.machines[0].threads = 4;
  EXPECT_EQ(said("cores"), "4 usable, 2 physical: 1 process of 4 threads");
  cluster.machines[0].threads = 1;
  EXPECT_EQ(
      said("cores"),
      "4 usable, 2 physical: 1 process of 1 thread; 1 unused, as all processes get equally many");
  // Another machine of the file is this computer too.
  cluster.machines[1].shell.clear();
  EXPECT_EQ(said("cores"), "4 usable, 2 physical: 1 process of 1 thread");
  cluster.machines[0].threads = 0;
  EXPECT_EQ(said("cores"),
            "4 usable, 2 physical: 1 process of 1 thread (run.threads changes that)");
}

TEST_F(Diagnosing, LeavesTheCoresToTheProcessorBesideACard) {
  cluster.machines[0].devices = {"cpu", "cuda:0"};
  desk().cores = 16;
  desk().physical_cores = 8;
  EXPECT_EQ(said("cores"),
            "16 usable, 8 physical: 1 process of 7 threads, 1 process of 1 thread for devices with "
            "memory of their own (run.threads changes that)");
}

TEST_F(Diagnosing, WarnsOfACpuShareThatIsNotThere) {
  cluster.machines[0].cpu_share = 6;
  EXPECT_THAT(worst("cores").what, HasSubstr("cpu_share"));
  EXPECT_THAT(worst("cores").remedy, HasSubstr("leave cpu_share out"));
}

TEST_F(Diagnosing, CountsNoMoreCoresThanAShareGrants) {
  Machine& machine = cluster.machines[0];
  machine.devices = {"cpu", "cpu"};
  desk().cores = 1;
  machine.cpu_share = 0.5;
  EXPECT_EQ(worst("cores").level, FindingLevel::kOk);
  machine.cpu_share = 1;
  EXPECT_EQ(worst("cores").level, FindingLevel::kWarning);
  machine.devices = {"cpu"};
  machine.threads = 4;
  EXPECT_THAT(worst("cores").what, HasSubstr("4 threads compete"));
  EXPECT_THAT(worst("cores").remedy, HasSubstr("threads = 1"));
}

TEST_F(Diagnosing, AsksNoCoresOrMemoryForVirtualDevices) {
  Machine& machine = cluster.machines[0];
  machine.devices.assign(8, "virtual");
  machine.memory_gib = 512;
  machine.virtual_speed = {.gflops = 1000};
  desk().blas = "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0";
  EXPECT_THAT(worst("devices").what, HasSubstr("virtual"));
  EXPECT_EQ(worst("devices").level, FindingLevel::kNote);
  for (const char* check : {"cores", "memory", "matrices"}) {
    EXPECT_EQ(worst(check).level, FindingLevel::kOk) << check;
  }
}

TEST_F(Diagnosing, SaysWhatMemoryAndWhichNumbersThereAre) {
  cluster.machines[0].memory_gib = 0.5;
  desk().found.devices.front().types = {"fp32", "bf16"};
  EXPECT_EQ(said("memory"), "8.00 GiB available, limited to 512.0 MiB by memory_gib");
  EXPECT_THAT(said("matrices"), HasSubstr("the processor computes in fp32, bf16"));
}

TEST_F(Diagnosing, WarnsOfMemoryThatIsTaken) {
  cluster.machines[0].memory_gib = 8;
  EXPECT_EQ(worst("memory").level, FindingLevel::kOk);
  cluster.machines[0].memory_gib = 9;
  EXPECT_EQ(worst("memory").level, FindingLevel::kWarning);
}

TEST_F(Diagnosing, WarnsOfTheSlowLibraryForMatrices) {
  desk().blas = "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0";
  EXPECT_EQ(worst("matrices").level, FindingLevel::kWarning);
  EXPECT_THAT(worst("matrices").remedy, HasSubstr("openblas"));
}

TEST_F(Diagnosing, SaysThatAMachineHasARunFolderOfItsOwn) {
  desk().sees_mark_file = false;
  EXPECT_EQ(worst("run folder").level, FindingLevel::kOk);
  const auto all = diagnosed().findings;
  EXPECT_TRUE(std::ranges::any_of(all, [](const Finding& finding) {
    return finding.subject == "desk" && finding.what.find("its own folder") != std::string::npos;
  }));
}

TEST_F(Diagnosing, LooksWhereAMachineWasToldToKeepItsRuns) {
  cluster.machines[1].runs_dir = "/big/runs";
  MachineFacts& box = *inspection.machines[1].facts;
  box.sees_mark_file = false;
  const auto folder = [this] {
    const auto all = diagnosed().findings;
    return *std::ranges::find_if(all, [](const Finding& finding) {
      return finding.subject == "box" && finding.check == "run folder";
    });
  };
  EXPECT_EQ(folder().level, FindingLevel::kOk);
  EXPECT_THAT(folder().what, HasSubstr("stored in /big/runs, "));
  box.disk_bytes = kGib / 2;
  EXPECT_EQ(folder().level, FindingLevel::kWarning);
  EXPECT_THAT(folder().what, HasSubstr("free in /big/runs"));
  box.disk_bytes = 0;
  EXPECT_EQ(folder().level, FindingLevel::kNote);
  EXPECT_THAT(folder().remedy, HasSubstr("runs_dir"));
}

TEST_F(Diagnosing, SaysOnceThatTheRunFolderCannotBeWritten) {
  inspection.mark_failure = Error{ErrorCode::kCorrupt, "cannot write", "Read-only", ""};
  desk().sees_mark_file = false;
  const auto all = diagnosed().findings;
  EXPECT_EQ(std::ranges::count(all, "run folder", &Finding::check), 1);
  EXPECT_EQ(worst("run folder").code, ErrorCode::kCorrupt);
}

TEST_F(Diagnosing, TellsOfARunFolderThatIsNotThereYet) {
  inspection.asked.run_folder = "/shared";
  inspection.asked.missing_folder = "/shared/rnus";
  EXPECT_EQ(worst("run folder").level, FindingLevel::kNote);
  EXPECT_THAT(worst("run folder").what,
              HasSubstr("/shared/rnus does not exist yet; its parent /shared is"));
}

TEST_F(Diagnosing, GivesSpeedsInUnitsForPeople) {
  inspection.links->links[0].speed.bandwidth_bytes_per_s = 55.13e9 / 8;
  const auto all = diagnosed().findings;
  const auto speed = std::ranges::find(all, "speed", &Finding::check);
  ASSERT_NE(speed, all.end());
  EXPECT_THAT(speed->what, HasSubstr("55.1 Gbit/s"));
  EXPECT_THAT(speed->remedy, HasSubstr("motley probe --cluster FILE"));
}

TEST_F(Diagnosing, WarnsOfAFullDisk) {
  desk().disk_bytes = kGib / 2;
  EXPECT_EQ(worst("run folder").level, FindingLevel::kWarning);
}

TEST_F(Diagnosing, NotesAClockThatIsApart) {
  inspection.machines[1].clock_ahead_s = -0.5;
  EXPECT_EQ(worst("clock").level, FindingLevel::kOk);
  inspection.machines[1].clock_ahead_s = -90;
  EXPECT_EQ(worst("clock").level, FindingLevel::kNote);
  EXPECT_THAT(worst("clock").what, HasSubstr("90.0 s behind"));
}

TEST_F(Diagnosing, JudgesEveryAddress) {
  EXPECT_TRUE(assessed("10.0.0.1").is_taken);
  EXPECT_THAT(assessed("10.0.0.1").why, HasSubstr("routes to box from it"));
  EXPECT_THAT(assessed("127.0.0.1").why, HasSubstr("only from the machine itself"));
  EXPECT_THAT(assessed("172.17.0.1").why, HasSubstr("containers"));
  desk().candidates.push_back({"eth1", "192.168.7.1", "wired", false, 0});
  EXPECT_THAT(assessed("192.168.7.1").why, HasSubstr("down"));
  desk().candidates.back().is_up = true;
  EXPECT_THAT(assessed("192.168.7.1").why, HasSubstr("no route to a machine of the cluster"));
}

TEST_F(Diagnosing, ProposesTheAddressThatReachesThePeersInPlaceOfOneThatIsNotThere) {
  cluster.machines[0].address = "10.0.0.9";
  const Finding finding = worst("address");
  EXPECT_EQ(finding.level, FindingLevel::kProblem);
  EXPECT_EQ(finding.code, ErrorCode::kPeer);
  EXPECT_THAT(finding.what, HasSubstr("no interface there has 10.0.0.9"));
  EXPECT_THAT(finding.remedy, HasSubstr("write address = \"10.0.0.1\" (eth0)"));
}

TEST_F(Diagnosing, RefusesAnInterfaceThatDoesNotHaveTheAddress) {
  cluster.machines[0].interface = "docker0";
  EXPECT_THAT(worst("address").what, HasSubstr("is on eth0"));
  EXPECT_EQ(worst("address").code, ErrorCode::kConfig);
}

TEST_F(Diagnosing, RefusesAnAddressWithoutACable) {
  desk().candidates[1].is_up = false;
  EXPECT_THAT(worst("address").what, HasSubstr("no cable"));
}

TEST_F(Diagnosing, WarnsWhenTheSystemGoesAnotherWay) {
  desk().routes[0].from = "172.17.0.1";
  EXPECT_EQ(worst("route").level, FindingLevel::kWarning);
  EXPECT_EQ(worst("route").subject, "desk -> box");
  EXPECT_THAT(worst("route").what, HasSubstr("docker0"));
  desk().routes[0].from = "";
  EXPECT_EQ(worst("route").level, FindingLevel::kProblem);
}

TEST_F(Diagnosing, NotesAWirelessAddress) {
  desk().candidates[1].kind = "wireless";
  EXPECT_EQ(worst("address").level, FindingLevel::kNote);
}

TEST_F(Diagnosing, RefusesATransportThatWouldExposeThem) {
  comm.transport = "ucx";
  EXPECT_EQ(worst("transport").level, FindingLevel::kProblem);
  EXPECT_EQ(diagnosed().pairs[0].transport, "");
  cluster.trusted = true;
  EXPECT_EQ(worst("transport").level, FindingLevel::kOk);
  EXPECT_EQ(diagnosed().pairs[0].transport, "ucx");
}

TEST_F(Diagnosing, RefusesATransportThatABuildLacks) {
  cluster.trusted = true;
  desk().transports = {"tcp"};
  EXPECT_EQ(worst("transport").level, FindingLevel::kOk);
  comm.transport = "ucx";
  EXPECT_THAT(worst("transport").what, HasSubstr("lacks transport 'ucx'"));
}

TEST_F(Diagnosing, SaysWhyTheMachinesDoNotConnect) {
  inspection.links.reset();
  inspection.links_failure = Error{ErrorCode::kPeer, "cannot connect to rank 1", "timed out", ""};
  EXPECT_EQ(worst("connect").level, FindingLevel::kProblem);
  EXPECT_EQ(worst("connect").code, ErrorCode::kPeer);
  EXPECT_THAT(worst("connect").remedy, HasSubstr("firewall"));
}

TEST_F(Diagnosing, ComparesLinksWithTheClusterFile) {
  LinkSpeed& speed = inspection.links->links[1].speed;
  speed.bandwidth_bytes_per_s = 0.4 * cluster.network.bandwidth_bytes_per_s;
  EXPECT_EQ(worst("speed").level, FindingLevel::kWarning);
  EXPECT_EQ(worst("speed").subject, "box -> desk");
  EXPECT_THAT(worst("speed").what, HasSubstr("40 % of the planned bandwidth"));
  speed.bandwidth_bytes_per_s = 3 * cluster.network.bandwidth_bytes_per_s;
  EXPECT_EQ(worst("speed").level, FindingLevel::kNote);
  speed.bandwidth_bytes_per_s = cluster.network.bandwidth_bytes_per_s;
  speed.latency_s = 0.02;
  EXPECT_EQ(worst("speed").level, FindingLevel::kWarning);
}

// The links of a simulated cluster must not be used for a plan.
TEST_F(Diagnosing, DoesNotAdviseToPlanWithLinksOfASimulatedRun) {
  for (Machine& machine : cluster.machines) {
    machine.devices = {"virtual"};
    machine.virtual_speed = {.gflops = 1000};
  }
  for (MeasuredLink& link : inspection.links->links) {
    link.speed.bandwidth_bytes_per_s = 87 * cluster.network.bandwidth_bytes_per_s;
  }
  EXPECT_EQ(worst("speed").level, FindingLevel::kNote);
  EXPECT_THAT(worst("speed").what, HasSubstr("plan assumes 1.00 Gbit/s"));
  EXPECT_EQ(worst("speed").remedy, "");
}

TEST_F(Diagnosing, OfOneMachineNeedsNoAddress) {
  cluster = local_cluster(1);
  inspection.machines.pop_back();
  inspection.links.reset();
  for (const Finding& finding : diagnosed().findings) {
    EXPECT_EQ(finding.level, FindingLevel::kOk) << finding.check << ": " << finding.what;
  }
  EXPECT_TRUE(diagnosed().pairs.empty());
}

}  // namespace
}  // namespace motley
