// SPDX-License-Identifier: MIT
#include <demi/host/isa.hpp>

#include <string>
#include <support/catch.hpp>

TEST_CASE("instruction sets are read back from their names") {
    for (const auto isa : {demi::host_isa::portable, demi::host_isa::avx2, demi::host_isa::avx512,
                           demi::host_isa::avx512_bf16}) {
        CHECK(demi::parse_host_isa(demi::name(isa)) == isa);
    }
    CHECK(demi::name(demi::host_isa::avx2) == "avx2");
    CHECK(demi::name(demi::host_isa::avx512_bf16) == "avx512_bf16");
}

TEST_CASE("an unknown instruction set is named in the error") {
    std::string text;
    try {
        demi::parse_host_isa("sse9");
    } catch (const demi::invalid_argument& failure) {
        text = failure.what();
    }
    CHECK(text.find("\"sse9\"") != std::string::npos);
    CHECK(text.find("avx512_bf16") != std::string::npos);
    CHECK_THROWS_AS(demi::parse_host_isa(""), demi::invalid_argument);
    CHECK_THROWS_AS(demi::parse_host_isa("AVX2"), demi::invalid_argument);
}

TEST_CASE("the default instruction set is one that was detected") {
    CHECK(demi::default_host_isa() <= demi::detected_host_isa());
    CHECK(demi::detected_host_isa() == demi::detected_host_isa());
}
