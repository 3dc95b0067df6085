// The edges that may be between the folders of modules, and who may include which library: the
// tables of layers_test.cc, which holds the sources to them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace motley {

// What a folder may include beside itself, lowest first: an entry names only folders that stand
// above it in this list. Every entry is in use.
extern const std::vector<std::pair<std::string, std::set<std::string>>> kMayInclude;

// The one file that wraps each library; or, where it ends in an underscore, the family of files. A
// library that two modules use stands here twice.
extern const std::multimap<std::string, std::string> kWrappedIn;

// The folders that may include what is below these folders of LibTorch.
extern const std::set<std::string> kTorchHeaders;
extern const std::set<std::string> kTorchFolders;

}  // namespace motley
