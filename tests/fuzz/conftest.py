"""The corpus is run by test_corpus, not collected."""

collect_ignore_glob = ["corpus/*"]
