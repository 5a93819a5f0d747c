// The precompiled header of the tests (CMakeLists.txt), as csrc/pch.h is of the rest: every test
// includes what it uses. Half of them include all of ATen, which takes 7 s, and 1 s from here.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "pch.h"
