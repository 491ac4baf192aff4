// certifit._native.tree: coded tables, decision trees and forests.
#include "tree/module.hpp"

NB_MODULE(tree, m) {
    nanobind::set_leak_warnings(false);  // a model that lives as long as the interpreter is no leak
    certifit::tree::define_table(m);
    certifit::tree::define_growing(m);
    certifit::tree::define_forest(m);
}
