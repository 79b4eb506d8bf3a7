// SPDX-License-Identifier: MIT
/// The other unit; it must see the same inline objects.
#include <all_headers.hpp>

demi::error_handler handler_seen_by_b();

demi::error_handler handler_seen_by_b() { return demi::detail::current_error_handler(); }
