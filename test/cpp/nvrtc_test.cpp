// Which architecture kernels are compiled for.

#include "backend/cuda/nvrtc.h"

#include <gtest/gtest.h>

namespace torch_lazy::cuda {
namespace {

const std::vector<int> kOfCuda128{50, 60, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 120};

TEST(NearestArchitecture, IsTheDevicesOwn) {
  EXPECT_EQ(nearest_architecture(90, kOfCuda128), "sm_90");
  EXPECT_EQ(nearest_architecture(101, kOfCuda128), "sm_101");
}

TEST(NearestArchitecture, IsAnOlderOneOfTheGeneration) {
  EXPECT_EQ(nearest_architecture(121, kOfCuda128), "sm_120");
}

TEST(NearestArchitecture, IsTranslatedByTheDriverWhereTheGenerationIsNotKnown) {
  EXPECT_EQ(nearest_architecture(90, {70, 75, 80}), "compute_80");
}

TEST(NearestArchitecture, IsNoEmbeddedDevices) {
  EXPECT_EQ(nearest_architecture(103, kOfCuda128), "sm_100");
  EXPECT_EQ(nearest_architecture(89, {80, 86, 87}), "sm_86");
}

TEST(NearestArchitecture, IsTranslatedForAnEmbeddedDeviceThatIsNotKnown) {
  EXPECT_EQ(nearest_architecture(87, {75, 80, 86}), "compute_86");
}

TEST(NearestArchitecture, IsNoneWhereAllAreNewer) {
  EXPECT_EQ(nearest_architecture(70, {75, 80}), "");
}

}  // namespace
}  // namespace torch_lazy::cuda
