"""Why a test of scikit-learn fails with a drop-in in place: the reason, and patterns of the names of the tests.

A reason among `NOT_APPLICABLE` means that the test looks at something that a drop-in cannot have: private names, mocks of
internal functions, the steps of another solver, the exact numbers of another random stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

__all__ = ["DIFFERENCES", "NOT_APPLICABLE", "explanation", "idle"]

REFUSED = "Scikit-learn refuses, or warns, where Certifit has an answer"
UNTOUCHED = "X is never overwritten, and input is always checked"
STEPS = "The test counts or limits the iterations of a solver that is not used, or stops a search halfway to go on from there"
BAD_START = (
    "The test puts a solver that is not used at bad coefficients and allows it one or two iterations, so that it fails"
)
CONVERGED = "Ours converges where theirs warns that it does not"
INTERNAL = "The test replaces or reads scikit-learn's internal functions"
INTERNAL_TREES = "The test reads or replaces private attributes of scikit-learn's trees"
LOOSE = "The test compares with a model that scikit-learn has solved to its default tolerance only"
THREADS = "n_jobs is the number of threads, and has an effect"
RUNNING = "Callbacks of scikit-learn 1.9 are not called"
ROUNDING = "Numbers near zero beside far larger ones differ by 5e-7 of themselves; the test allows 1e-7"
ROUNDED_GAP = "The gap is of the size of rounding, 1e-15, and the test wants its digits"
NO_GAP = "The gap that is proven is zero in double precision; the test wants it above zero"
OFFERED = "Not offered: the error says so and what to use instead"
WHOLE = "The tree of merges is always whole"
WORDS = "The error says the same in other words"
DRAWS = "Draws are of another random stream, or ties between equal splits are resolved by another rule"
ALMOST = "A column whose values differ by less than 1e-7 is split like any other"
SECONDS = "The certificate says how long the fit took: two files of the same fit differ in that"
EARLIER = "A kernel function that returns the wrong shape is refused at fit, not only when rows are predicted"
NATIVE = "A forest grows by native threads: joblib's backends are not asked"
BEYOND = "Where all known values of a node are equal, its threshold is infinite: every known value goes left, missing ones right"
NEAR_ZERO = "The test wants coefficients of zero in six digits; those of the optimum are of the size 1e-5"
BOTH_NONE = (
    "Two classes have the probability zero, and the test wants the first of them to be the one of the least score"
)
SETTLED = "Fits with other seeds agree better than the test wants them to"
NEARER = "The test wants a fit without weights to be worse than 0.96; ours is 0.96"
ASKED = "The offset of the optimum is zero; the test wants it within 1.3e-6 of that of a descent, which is 1.6e-6 off"
OPEN_TIES = "Of rows at the same distance the first comes first; scikit-learn leaves their order open"
INDEFINITE = "A slip in scikit-learn: the matrix that the test makes positive definite is not, and so gives no distance"
ABSENT = "A row of weight zero is no row: a class of which all rows weigh nothing is not there"
TAMED = "Weights of boosting keep their sum, and no error counts as less than 1e-10: they do not overflow"
SHARE = "A share of the variance counts as reached within 1e-12 of it"
SWAPPED = "A slip in scikit-learn: its message calls the least value the greatest, and the test wants it so"
ALONE = "A y of one class is refused: there is nothing to tell apart"

NOT_APPLICABLE: tuple[str, ...] = (INTERNAL, INTERNAL_TREES, STEPS, BAD_START)

LINEAR, GLM = "linear_model/tests/", "linear_model/_glm/tests/test_glm.py::"
TREE, FOREST = "tree/tests/test_tree.py::", "ensemble/tests/test_forest.py::"
DISCRIMINANT = "tests/test_discriminant_analysis.py::"
CALIBRATION = "tests/test_calibration.py::"
HIST = "ensemble/_hist_gradient_boosting/tests/test_gradient_boosting.py::"
SVM = "svm/tests/test_svm.py::"
NEIGHBORS, DENSITY = "neighbors/tests/test_neighbors.py::", "neighbors/tests/test_kde.py::"
TEXT = "feature_extraction/tests/test_text.py::"
BAGS, ADABOOST = "ensemble/tests/test_bagging.py::", "ensemble/tests/test_weight_boosting.py::"
MULTICLASS = "tests/test_multiclass.py::"
NETWORKS = "neural_network/tests/test_mlp.py::"
MEANS = "cluster/tests/test_k_means.py::"
SCALING = "manifold/tests/test_mds.py::"
HIERARCHY = "cluster/tests/test_hierarchical.py::"
COMPONENTS = "decomposition/tests/test_pca.py::"
DESCENT, RIDGE, LOGISTIC, SGD = (
    f"{LINEAR}test_{name}.py::" for name in ("coordinate_descent", "ridge", "logistic", "sgd")
)

DIFFERENCES: dict[str, tuple[str, ...]] = {
    REFUSED: (
        f"{NEIGHBORS}test_precomputed_sparse_invalid*",
        f"{LINEAR}test_base.py::test_raises_value_error_if_positive_and_sparse",
        f"{DESCENT}test_enet_nonfinite_params",
        f"{RIDGE}test_ridge_fit_intercept_sparse_error*",
        f"{RIDGE}test_ridge_fit_intercept_sparse_sag*",
        f"{RIDGE}test_ridge_positive_error_test*",
        f"{LOGISTIC}test_large_sparse_matrix*",
        f"{LOGISTIC}test_liblinear_with_large_values*",
        f"{LINEAR}test_quantile.py::test_error_interior_point_future",
        f"{DISCRIMINANT}test_lda_transform",
        f"{SGD}test_underflow_or_overflow",
        f"{COMPONENTS}test_sparse_pca_solver_error*",
        f"{TREE}test_big_input",
        f"{TREE}test_huge_allocations",
        f"{TREE}test_missing_value_errors*",
    ),
    OPEN_TIES: (f"{NEIGHBORS}test_k_and_radius_neighbors_duplicates*",),
    INDEFINITE: (f"{NEIGHBORS}test_*_brute_backend(*mahalanobis*",),
    UNTOUCHED: (
        f"{LINEAR}test_base.py::test_inplace_data_preprocessing*",
        f"{DESCENT}test_enet_copy_X_False_check_input_False",
        f"{DESCENT}test_check_input_false",
    ),
    STEPS: (
        f"{CALIBRATION}test_calibrated_classifier_cv_works_with_large_confidence_scores*",
        f"{DESCENT}test_warm_start_convergence*",
        f"{LINEAR}test_huber.py::test_huber_warm_start",
        f"{RIDGE}test_n_iter",
        f"{LOGISTIC}test_warm_start*",
        f"{LOGISTIC}test_zero_max_iter*",
        f"{MEANS}test_minibatch_iter_steps",
        f"{MEANS}test_minibatch_declared_convergence*",
        f"{MULTICLASS}test_ovr_partial_fit",
        *(
            f"{SGD}{name}*"
            for name in (
                "test_late_onset_averaging_",
                "test_adaptive_longer_than_constant",
                "test_average_",
                "test_sgd_multiclass_average",
                "test_sgd_averaged_",
                "test_partial_fit_equal_fit",
                "test_partial_fit_binary",
                "test_regression_losses",
                "test_validation_set_not_used_for_training",
                "test_sgd_random_state",
            )
        ),
    ),
    BAD_START: (
        f"{DESCENT}test_enet_coordinate_descent_raises_convergence*",
        f"{LINEAR}test_sparse_coordinate_descent.py::test_sparse_enet_coordinate_descent*",
    ),
    CONVERGED: (
        f"{RIDGE}test_lbfgs_solver_error",
        f"{LOGISTIC}test_max_iter*",
        f"{LOGISTIC}test_newton_cholesky_fallback_to_lbfgs*",
        f"{GLM}test_linalg_warning_with_newton_solver*",
        f"{SVM}test_linear_svm_convergence_warnings*",
        f"{SVM}test_libsvm_convergence_warnings*",
    ),
    INTERNAL: (
        f"{SCALING}test_normalized_stress_auto*",
        f"{NEIGHBORS}test_auto_algorithm*",
        "mixture/tests/test_gaussian_mixture.py::test_gaussian_mixture_all_init_does_not_estimate_gaussian_parameters*",
        f"{CALIBRATION}test_temperature_scaling(*",
        f"{DESCENT}test_lassoCV_does_not_set_precompute*",
        *(
            f"{NETWORKS}{name}"
            for name in (
                "test_fit",
                "test_gradient",
                "test_learning_rate_warmstart",
                "test_adaptive_learning_rate",
                "test_n_iter_no_change",
                "test_n_iter_no_change_inf",
            )
        ),
        f"{HIST}test_custom_loss*",
        f"{HIST}test_early_stopping_with_sample_weights",
        f"{HIST}test_raw_predict_is_called_with_custom_scorer",
        f"{SVM}test_gamma_scale",
        f"{SGD}test_plain_has_no_average_attr*",
        f"{SGD}test_validation_mask_correctly_subsets",
        f"{MEANS}test_kmeans_init_auto_with_initial_centroids*",
        f"{MEANS}test_minibatch_kmeans_init_size",
        f"{MEANS}test_n_init_auto*",
        f"{TEXT}test_tfidf_vectorizer_setters",
        f"{TEXT}test_tfidfvectorizer_export_idf",
        f"{SVM}test_svc_raises_error_internal_representation",
        f"{SVM}test_tweak_params",
    ),
    LOOSE: (
        f"{CALIBRATION}test_calibration_ensemble_false*",
        f"{LOGISTIC}test_logistic_cv_multinomial_score*",
    ),
    SHARE: (f"{COMPONENTS}test_pca_n_components_mostly_explained_variance_ratio",),
    THREADS: (f"{LOGISTIC}test_logisticregression_warns_with_n_jobs*",),
    RUNNING: (
        f"{LOGISTIC}test_logistic_regression_callback_support*",
        "preprocessing/tests/test_data.py::test_standard_scaler_callback_support*",
    ),
    ROUNDING: (
        f"{COMPONENTS}test_pca_svd_solver_auto(*",
        f"{LINEAR}test_sparse_coordinate_descent.py::test_sparse_dense_equality*",
    ),
    ROUNDED_GAP: (f"{DESCENT}test_lasso_dual_gap",),
    NO_GAP: (f"{DESCENT}test_multi_task_lasso_*",),
    WHOLE: (f"{HIERARCHY}test_compute_full_tree",),
    OFFERED: (
        f"{DENSITY}test_kde_algorithm_metric_choice*",
        f"{COMPONENTS}test_pca_score3",
    ),
    INTERNAL_TREES: (
        f"{TREE}test_build_pruned_tree*",
        f"{FOREST}test_forest_multioutput_integral_regression_target*",
        f"{FOREST}test_class_weights_forest*",
        f"{FOREST}test_max_samples_geq_one*",
        f"{FOREST}test_mse_criterion_object_segfault_smoke_test*",
        f"{FOREST}test_oob_not_computed_twice*",
        *(
            f"{HIST}{name}*"
            for name in (
                "test_binning_train_validation_are_separated",
                "test_categorical_different_order_same_model",
                "test_categorical_encoding_strategies",
                "test_dataframe_categorical_results_same_as_ndarray",
                "test_max_depth_max_leaf_nodes",
                "test_sample_weight_effect",
                "test_single_node_trees",
            )
        ),
    ),
    WORDS: (
        "cluster/tests/test_spectral.py::test_verbose*",
        f"{MEANS}test_kmeans_verbose*",
    ),
    DRAWS: (
        "tree/tests/test_export.py::test_export_text*",
        f"{SVM}test_svc_ovr_tie_breaking*",
        f"{ADABOOST}test_regression_toy*",
    ),
    ALMOST: (f"{TREE}test_almost_constant_feature*",),
    BEYOND: (f"{TREE}test_random_splitter_missing_values_uses_non_missing_min_max(single-non-missing*",),
    SECONDS: (f"{TREE}test_deterministic_pickle",),
    EARLIER: (f"{SVM}test_svr_errors",),
    NATIVE: (f"{FOREST}test_backend_respected*",),
    NEAR_ZERO: (f"{SGD}test_large_regularization(l2*",),
    BOTH_NONE: (f"{SGD}test_sgd_proba(SparseSGDClassifier*",),
    SETTLED: (f"{LOGISTIC}test_liblinear_dual_random_state*",),
    NEARER: (f"{SGD}test_balanced_weight*",),
    ASKED: (f"{SGD}test_sgd_oneclass_vs_linear_oneclass_offsets_match*",),
    ABSENT: (f"{BAGS}test_bagging_small_max_features",),
    TAMED: (f"{ADABOOST}test_sample_weights_infinite",),
    SWAPPED: ("mixture/tests/test_gaussian_mixture.py::test_check_weights",),
    ALONE: (f"{NETWORKS}test_preserve_feature_names(MLPClassifier*",),
}


def explanation(name: str) -> str | None:
    """The reason whose patterns fit a test's name."""
    plain = name.replace("[", "(")
    for reason, patterns in DIFFERENCES.items():
        if any(fnmatchcase(plain, pattern) for pattern in patterns):
            return reason
    return None


def idle(failed: Iterable[str]) -> list[str]:
    """The patterns that explain none of the tests that fail: what they were about has been mended."""
    plain = [name.replace("[", "(") for name in failed]
    every = (pattern for patterns in DIFFERENCES.values() for pattern in patterns)
    return [pattern for pattern in every if not any(fnmatchcase(name, pattern) for name in plain)]
