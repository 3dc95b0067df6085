#include <iostream>

#include "partitioner/cluster.h"
#include "partitioner/planner.h"

int main() {
  std::cout << motley::local_cluster(2).machines.size() << '\n';
}
