// SPDX-License-Identifier: MIT
/// What the tests of the host backend share.
#pragma once

#include <demi/host/isa.hpp>

#include <vector>

namespace demi_test {

inline std::vector<demi::host_isa> available_isas() {
    std::vector<demi::host_isa> isas;
    for (const auto isa : {demi::host_isa::portable, demi::host_isa::avx2, demi::host_isa::avx512,
                           demi::host_isa::avx512_bf16}) {
        if (isa <= demi::detected_host_isa()) isas.push_back(isa);
    }
    return isas;
}

}  // namespace demi_test
