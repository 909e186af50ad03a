// Reads the files that make_reference.py wrote.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "golden/formula.h"

namespace tide::golden {

struct Reference {
  std::string model;
  std::int64_t batch = 0;
  Shape sample;
  double loss = 0;
  std::map<std::string, double> parameter_norms;  // of the values themselves
  std::map<std::string, Summary> gradients;
  std::map<std::string, Summary> statistics;  // running mean and variance after the step
};

inline Summary read_summary(const nlohmann::json& row, std::size_t first) {
  return {row.at(first), {row.at(first + 1), row.at(first + 2), row.at(first + 3), row.at(first + 4)}};
}

// In a program that was taken to another machine the folder is not there: then from the repository's root.
inline std::ifstream open_reference(const std::string& folder, const std::string& file) {
  std::ifstream found(folder + "/golden/" + file);
  return found.is_open() ? std::move(found) : std::ifstream("tests/golden/" + file);
}

// `folder` is tests/; `file` for instance "resnet50.json".
inline Reference read_reference(const std::string& folder, const std::string& file) {
  const nlohmann::json root = nlohmann::json::parse(open_reference(folder, file));
  Reference reference;
  reference.model = root.at("model");
  reference.batch = root.at("batch");
  reference.sample = {1, root.at("sample").at(0), root.at("sample").at(1), root.at("sample").at(2)};
  reference.loss = root.at("loss");
  for (const nlohmann::json& row : root.at("parameters")) {
    reference.parameter_norms[row.at(0)] = row.at(1);
    reference.gradients[row.at(0)] = read_summary(row, 2);
  }
  for (const nlohmann::json& row : root.at("statistics")) reference.statistics[row.at(0)] = read_summary(row, 1);
  return reference;
}

}  // namespace tide::golden
