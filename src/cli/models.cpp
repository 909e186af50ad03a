// tide models: the zoo.
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "report/table.h"
#include "zoo/zoo.h"

namespace tide {

Command models_command(CLI::App& root) {
  auto json = std::make_shared<bool>(false);
  CLI::App* app = root.add_subcommand("models", "The models that come with the program");
  app->add_flag("--json", *json, "Print one JSON object");
  return {app, [json] {
            Table table({{"model"}, {"input"}, {"classes", Align::right}, {"what it is"}});
            nlohmann::ordered_json list = nlohmann::ordered_json::array();
            for (const ModelInfo& model : models()) {
              table.add({model.name, sample_text(model.sample), fmt::format("{}", model.classes), model.description});
              list.push_back({{"name", model.name},
                              {"input", sample_text(model.sample)},
                              {"classes", model.classes},
                              {"description", model.description}});
            }
            if (*json)
              fmt::print("{}\n", nlohmann::ordered_json{{"models", list}}.dump(2));
            else
              fmt::print("{}\nAdd @N for N classes (resnet50@10), --input CxHxW for another input.\n", table.text());
            return kDone;
          }};
}

}  // namespace tide
