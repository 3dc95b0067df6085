#include "cli/command.h"

namespace motley {

std::vector<Command> all_commands() {
  std::vector<Command> commands{init_command(),     train_command(),   launch_command(),
                                join_command(),     plan_command(),    simulate_command(),
                                profile_command(),  watch_command(),   report_command(),
                                doctor_command(),   devices_command(), probe_command(),
                                generate_command(), config_command(),  completion_command()};
  for (Command& command : bench_commands()) commands.push_back(std::move(command));
  for (Command& command : data_commands()) commands.push_back(std::move(command));
  for (Command& command : package_commands()) commands.push_back(std::move(command));
  for (Command& command : checkpoint_commands()) commands.push_back(std::move(command));
  return commands;
}

}  // namespace motley
