// The permitted dependencies between the modules' folders, and the folders that may include each
// library: the tables that layers_test.cc checks the sources against.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace motley {

// The folders that each folder may include in addition to itself, lowest first: an entry names
// only folders above it in this list. Every entry is in use.
extern const std::vector<std::pair<std::string, std::set<std::string>>> kMayInclude;

// The one file that wraps each library; with a trailing underscore, the family of files. A library
// that two modules use is listed twice.
extern const std::multimap<std::string, std::string> kWrappedIn;

// The folders that may include headers below these folders of LibTorch.
extern const std::set<std::string> kTorchHeaders;
extern const std::set<std::string> kTorchFolders;

}  // namespace motley
