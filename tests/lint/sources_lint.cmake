# SPDX-License-Identifier: MIT
# Every source starts with its licence, and nothing holds unfinished notes, a machine's paths or an
# address that is not known to last.

cmake_minimum_required(VERSION 3.23)
include("${CMAKE_CURRENT_LIST_DIR}/lint.cmake")

set(known_hosts
    github.com raw.githubusercontent.com archive.ics.uci.edu creativecommons.org doi.org arxiv.org
    www.w3.org)
string(REPLACE "." "\\." host_pattern "${known_hosts}")
string(REPLACE ";" "|" host_pattern "${host_pattern}")

foreach(source IN LISTS sources)
    file(READ "${ROOT}/${source}" start LIMIT 200)
    if(NOT start MATCHES "^(// expect: [^\n]*\n)?// SPDX-License-Identifier: MIT\n")
        finding("${source}: expected '// SPDX-License-Identifier: MIT' at the top")
    endif()
endforeach()

foreach(file IN LISTS sources build_files top_files)
    # This file names what it looks for.
    if(file MATCHES "sources_lint\\.cmake$")
        continue()
    endif()
    matching_lines(unfinished "${file}" "TODO|FIXME|XXX")
    foreach(line IN LISTS unfinished)
        finding("${file}: '${line}'")
    endforeach()
    matching_lines(paths "${file}" "(^|[^a-zA-Z0-9_.}>])/(work|root|home|mnt)/")
    foreach(line IN LISTS paths)
        finding("${file}: a path of one machine: '${line}'")
    endforeach()
    matching_lines(addresses "${file}" "https?://")
    foreach(line IN LISTS addresses)
        if(NOT line MATCHES "https?://(${host_pattern})(/|$)")
            finding("${file}: an address that is not in the list of this check: '${line}'")
        endif()
    endforeach()
endforeach()
report("sources that break the house rules")
