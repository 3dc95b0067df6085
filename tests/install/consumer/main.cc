#include <iostream>

#include "partitioner/search/planner.h"
#include "plan/cluster.h"

int main() {
  std::cout << motley::local_cluster(2).machines.size() << '\n';
}
