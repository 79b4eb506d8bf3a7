// SPDX-License-Identifier: MIT
/// The process's environment, and what is known about the machine.
#pragma once

#include "report.hpp"

#include <cstddef>

namespace bench {

/// Starts the program again without the variables that make a peer use other kernels or threads
/// than it chooses by itself: OpenBLAS reads them before `main`. Returns when they are right.
void clean_environment(char** arguments);

/// Threads of peers that wait for work would spin on the second core.
void set_peer_threads(std::size_t count);

/// Processor, instruction sets, compiler, peers.
void state_machine(report& results);

/// How busy the machine is; figures of a busy one are provisional.
std::string load_average();

}  // namespace bench
