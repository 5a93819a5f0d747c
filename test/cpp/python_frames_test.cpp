// Which of a thread's Python frames an operation is said to come from.

#include "tape/python_frames.h"

#include <gtest/gtest.h>
#include <torch/csrc/python_headers.h>

#include <algorithm>
#include <string>
#include <vector>

namespace torch_lazy {
namespace {

std::vector<LocationId> recorded;

// Runs the source, as file `file`; its code object is gone then. Returns where it called record().
std::vector<LocationId> locations_in(const std::string& source, const std::string& file) {
  recorded.clear();
  static PyMethodDef record = {"record",
                               [](PyObject*, PyObject*) -> PyObject* {
                                 recorded.push_back(current_location());
                                 Py_RETURN_NONE;
                               },
                               METH_NOARGS, nullptr};
  if (!Py_IsInitialized()) Py_InitializeEx(0);
  PyObject* const globals = PyDict_New();
  PyObject* const function = PyCFunction_New(&record, nullptr);
  PyDict_SetItemString(globals, "record", function);
  PyObject* const code = Py_CompileString(source.c_str(), file.c_str(), Py_file_input);
  EXPECT_NE(code, nullptr);
  PyObject* const result = PyEval_EvalCode(code, globals, globals);
  EXPECT_NE(result, nullptr);
  for (PyObject* object : {result, code, function, globals}) Py_XDECREF(object);
  return recorded;
}

LocationId location_in(const std::string& source, const std::string& file) {
  return locations_in(source, file).back();
}

TEST(CurrentLocation, IsTheLineThatRuns) {
  const SourceLocation where =
      location(location_in("def step():\n    x = record()\nstep()\n", "train.py"));

  EXPECT_EQ(where.file, "train.py");
  EXPECT_EQ(where.line, 2);
  EXPECT_EQ(where.column, 8);
  EXPECT_EQ(where.function, "step");
}

TEST(CurrentLocation, PassesLibraryCode) {
  const std::string call_in_library =
      "exec(compile('def call(f):\\n  f()\\n', '/x/site-packages/y.py', 'exec'))\n"
      "call(record)\n";

  EXPECT_EQ(to_string(location_in(call_in_library, "train.py")), "train.py:2:0");
}

TEST(CurrentLocation, IsTheOutermostLineOfLibraryCodeAlone) {
  const std::string source = "def inner():\n  record()\ninner()\n";

  EXPECT_EQ(to_string(location_in(source, "/x/site-packages/y.py")), "/x/site-packages/y.py:3:0");
}

TEST(CurrentLocation, OfCodeMadeAnewIsItsOwn) {
  // Of equal length, so that each takes the memory of the one before it.
  for (int i = 100; i < 200; ++i) {
    const std::string file = "<program " + std::to_string(i) + ">";
    const std::string source = i % 2 != 0 ? "\n\nrecord()\n" : "\nrecord()\n\n";

    EXPECT_EQ(to_string(location_in(source, file)), file + (i % 2 != 0 ? ":3:0" : ":2:0"));
  }
}

TEST(CurrentLocation, OfARunningProgramOutlastsMuchOtherCode) {
  const std::string source = R"(
def step(): record()
step()
for i in range(2000):
    exec(compile('record()', f'<other {i}>', 'exec'))
step()
)";

  EXPECT_EQ(to_string(location_in(source, "train.py")), "train.py:2:12");
}

TEST(CurrentLocation, OfARunningProgramStaysTheSameBehindMuchOtherCode) {
  const std::string source = R"(
def compiled(number):
    names = {'record': record}
    exec(compile('def step(): record()', f'<step {number}>', 'exec'), names)
    return names['step']
steps, others = ([compiled(i) for i in numbers] for numbers in (range(300), range(300, 2300)))
for step in others + steps + steps: step()
)";
  constexpr size_t kSteps = 300;

  const std::vector<LocationId> all = locations_in(source, "train.py");

  const auto second = all.end() - kSteps;
  EXPECT_TRUE(std::equal(second - kSteps, second, second));
}

}  // namespace
}  // namespace torch_lazy
