// The device guard of `lazy`: one device, one stream. The backend orders its own work.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "device/lazy_storage.h"
#include "device/register.h"

namespace torch_lazy {
namespace {

class LazyGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::Lazy; }
  c10::Device exchangeDevice(c10::Device device) const override {
    check(device);
    return kLazyDevice;
  }
  c10::Device getDevice() const override { return kLazyDevice; }
  void setDevice(c10::Device device) const override { check(device); }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const override { return stream(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  // Events and streams: work on this device is in program order, so each has always happened.
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { Recorder::synchronize_all(); }
  void synchronizeDevice(const c10::DeviceIndex) const override { Recorder::synchronize_all(); }

 private:
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, kLazyDevice); }
  static void check(c10::Device device) {
    TORCH_CHECK(device.index() <= 0, "there is no device ", device,
                ": device lazy has 1 device, lazy:0");
  }
};

}  // namespace

void register_guard() {
  // Never destroyed: tensors may outlive static destructors.
  static const c10::impl::DeviceGuardImplRegistrar registrar(c10::DeviceType::Lazy, new LazyGuard);
}

}  // namespace torch_lazy
