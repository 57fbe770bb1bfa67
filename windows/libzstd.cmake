# libzstd's build with CMake lies in a folder of its own.
cmake_minimum_required(VERSION 3.25)
project(libzstd C CXX)
add_subdirectory(build/cmake)
