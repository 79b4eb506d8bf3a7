// SPDX-License-Identifier: MIT
#include "peers.hpp"

#if defined(BENCH_HAS_ONEDNN)
#include <memory>
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#endif

namespace bench::onednn {

#if defined(BENCH_HAS_ONEDNN)

namespace {

using dnnl::memory;

/// A primitive with its arguments, ready to run.
struct prepared {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    dnnl::primitive primitive;
    std::unordered_map<int, memory> arguments;

    void run() {
        primitive.execute(stream, arguments);
        stream.wait();
    }
};

memory::data_type type_of(number format) {
    switch (format) {
        case number::float16:
            return memory::data_type::f16;
        case number::bfloat16:
            return memory::data_type::bf16;
        default:
            return memory::data_type::f32;
    }
}

memory::dim dim(std::size_t value) { return static_cast<memory::dim>(value); }

memory::desc matrix(std::size_t rows, std::size_t columns, number format, bool transposed) {
    return {{dim(rows), dim(columns)},
            type_of(format),
            transposed ? memory::format_tag::ba : memory::format_tag::ab};
}

memory wrap(const memory::desc& description, const dnnl::engine& engine, const void* data) {
    return {description, engine, const_cast<void*>(data)};
}

task as_task(const std::shared_ptr<prepared>& ready) {
    return [ready] { ready->run(); };
}

task make_matmul(const product& shape, number format, const void* a, const void* b, float* c,
                 bool packed, std::string& implementation) try {
    const auto ready = std::make_shared<prepared>();
    const memory::desc left = matrix(shape.m, shape.k, format, shape.transpose_a);
    const memory::desc right = matrix(shape.k, shape.n, format, shape.transpose_b);
    const memory::desc free(right.dims(), right.data_type(), memory::format_tag::any);
    const memory::desc result = matrix(shape.m, shape.n, number::float32, false);
    const dnnl::matmul::primitive_desc description({left, packed ? free : right, result},
                                                   ready->engine);
    implementation = description.impl_info_str();
    memory factor = wrap(right, ready->engine, b);
    if (packed) {
        memory own(description.weights_desc(), ready->engine);
        dnnl::reorder(factor, own).execute(ready->stream, factor, own);
        ready->stream.wait();
        factor = own;
    }
    ready->primitive = dnnl::matmul(description);
    ready->arguments = {{DNNL_ARG_SRC, wrap(left, ready->engine, a)},
                        {DNNL_ARG_WEIGHTS, factor},
                        {DNNL_ARG_DST, wrap(result, ready->engine, c)}};
    return as_task(ready);
} catch (const dnnl::error&) {
    return {};
}

}  // namespace

std::string describe() {
    const dnnl_version_t* version = dnnl_version();
    return std::to_string(version->major) + '.' + std::to_string(version->minor) + '.' +
           std::to_string(version->patch);
}

void set_threads(std::size_t count) { omp_set_num_threads(static_cast<int>(count)); }

task matmul(const product& shape, number format, const void* a, const void* b, float* c,
            std::string& implementation) {
    return make_matmul(shape, format, a, b, c, false, implementation);
}

task matmul_packed(const product& shape, number format, const void* a, const void* b, float* c,
                   std::string& implementation) {
    return make_matmul(shape, format, a, b, c, true, implementation);
}

task reorder(number from_format, const void* from, number to_format, void* to, std::size_t count,
             std::string& implementation) try {
    const auto ready = std::make_shared<prepared>();
    const auto line = [&](number format) {
        return memory::desc({dim(count)}, type_of(format), memory::format_tag::a);
    };
    const memory source = wrap(line(from_format), ready->engine, from);
    const memory target = wrap(line(to_format), ready->engine, to);
    const dnnl::reorder::primitive_desc description(source, target);
    implementation = description.impl_info_str();
    ready->primitive = dnnl::reorder(description);
    ready->arguments = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
    return as_task(ready);
} catch (const dnnl::error&) {
    return {};
}

#else

std::string describe() { return {}; }
void set_threads(std::size_t) {}
task matmul(const product&, number, const void*, const void*, float*, std::string&) { return {}; }
task matmul_packed(const product&, number, const void*, const void*, float*, std::string&) {
    return {};
}
task reorder(number, const void*, number, void*, std::size_t, std::string&) { return {}; }

#endif

}  // namespace bench::onednn
