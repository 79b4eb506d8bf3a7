// SPDX-License-Identifier: MIT
/// One of two units with every header: a function that is not inline would be defined twice.
#include <all_headers.hpp>

demi::error_handler handler_seen_by_b();

int main() {
    const demi::error_handler mine = [](const char*) {};
    const demi::error_handler original = demi::set_error_handler(mine);
    const bool shared = handler_seen_by_b() == mine;
    demi::set_error_handler(original);
    return shared ? 0 : 1;
}
