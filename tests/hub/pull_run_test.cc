// A model from the hub answers a question: the bundled model is served, pulled and run by its name.
#include "tests/hub/pull_test.h"

namespace vllm::app {
namespace {

class PullRunTest : public PullTest {
 protected:
  PullRunTest() {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(GuideModel())) {
      files[entry.path().filename().string()] = ReadFile(entry.path());
    }
    model_ = MakeRepository("org/guide", files);
    server_.AddRepository(model_);
  }
  ProgramResult Run(const std::string& model) {
    ProgramOptions options;
    options.environment = environment();
    return RunProgram({"run", "-m", model, "-t", "0", "-n", "8", "Hello"}, options);
  }

  HubRepository model_;
};

TEST_F(PullRunTest, APulledModelRunsByItsName) {
  const ProgramResult pull = Pull({"org/guide"});
  ASSERT_EQ(pull.status, 0) << pull.err;
  server_.ForgetRequests();
  const ProgramResult expected = Run(GuideModel());
  ASSERT_EQ(expected.status, 0) << expected.err;
  const ProgramResult by_name = Run("org/guide");
  EXPECT_EQ(by_name.status, 0) << by_name.err;
  EXPECT_EQ(by_name.out, expected.out);
  // Standard output of pull is the path to run.
  EXPECT_EQ(Run(pull.out.substr(0, pull.out.size() - 1)).out, expected.out);
  EXPECT_EQ(server_.Requests(), std::vector<std::string>());
}

}  // namespace
}  // namespace vllm::app
