// SPDX-License-Identifier: MIT
/// Without exceptions an error reaches the handler with its message, and then the program aborts.
#include <all_headers.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>

static_assert(DEMI_EXCEPTIONS == 0);

namespace {

bool handled = false;

void note_error(const char* message) {
    handled = std::strstr(message, "leading dimension 2") != nullptr;
}

// Returning from here would still end the program by SIGABRT; only the right order passes.
extern "C" void leave_on_abort(int) { std::_Exit(handled ? 0 : 1); }

}  // namespace

int main() {
    std::signal(SIGABRT, leave_on_abort);
    demi::set_error_handler(note_error);
    float elements[6] = {};
    const demi::matrix_view<float> too_narrow(elements, 2, 3, 2, demi::layout::row_major);
    return too_narrow.empty() ? 2 : 3;
}
