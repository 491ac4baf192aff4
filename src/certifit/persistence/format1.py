"""The classes of files of format 1, which named them by the module they were in then."""

from __future__ import annotations

__all__ = ["FORMAT1"]

# Module → its classes, each by the name it has in files now; `Old=New` where that is not what it was called.
_CLASSES = {
    "certificate": "Certificate",
    "contest.calibrated": "Calibrated",
    "contest.column_types": "Column=TableColumn Task=ContestTask",
    "contest.entrants.baseline": "Constant=ConstantModel ConstantShares=ConstantSharesModel",
    "contest.model": "Chain Blend TableModel",
    "contest.result": "Result",
    "contest.table": "TableSchema",
    "contest.values": "NumberFormat",
    "datasets": "datasets.Dataset",
    "evaluation.calibration": "CalibrationBin CalibrationCurve",
    "evaluation.comparison": "Pair=ComparedPair Comparison",
    "evaluation.curves": "LearningCurve ValidationCurve",
    "evaluation.decisions": "Costs ThresholdTable",
    "evaluation.dependence": "Dependence",
    "evaluation.importance": "Importance",
    "evaluation.ledger": "LedgerRow Ledger",
    "evaluation.losses.gamma": "losses.Gamma",
    "evaluation.losses.huber": "losses.Huber",
    "evaluation.losses.margin": "losses.Logistic losses.Hinge losses.PerceptronLoss losses.SquaredHinge losses.Exponential",
    "evaluation.losses.poisson": "losses.Poisson",
    "evaluation.losses.quantile": "losses.Quantile losses.Absolute losses.EpsilonInsensitive losses.RelativeError",
    "evaluation.losses.softmax": "losses.Softmax",
    "evaluation.losses.squared": "losses.Squared",
    "evaluation.penalties.constraints": "penalties.Box penalties.NonNegative penalties.L2Ball penalties.L1Ball",
    "evaluation.penalties.elastic": "penalties.NoPenalty penalties.L2 penalties.L1 penalties.ElasticNet",
    "evaluation.penalties.power": "penalties.Lq",
    "evaluation.ranking": "RocCurve PrCurve",
    "evaluation.risk": "Risk",
    "evaluation.splits": "SealedSplit",
    "models.adaboost": "AdaBoostClassifier",
    "models.bagging": "BaggingClassifier BaggingRegressor",
    "models.boosting": "BoostedTrees GradientBoostingRegressor GradientBoostingClassifier",
    "models.boosting_trees": "Tree=BoostedTree TreeSum=BoostedTreeSum",
    "models.forest": "RandomForestClassifier RandomForestRegressor",
    "models.glm": "PoissonRegressor GammaRegressor",
    "models.inference": "Inference Summary=InferenceSummary",
    "models.lasso_cv": "LassoCV ElasticNetCV",
    "models.linear": "LinearModel",
    "models.logistic": "LogisticRegression",
    "models.logistic_cv": "LogisticRegressionCV",
    "models.multiclass": "OneVsRest OneVsOne OutputCode",
    "models.multiclass_svm": "MulticlassSVC",
    "models.path": "RegularizationPath",
    "models.perceptron": "Perceptron PocketPerceptron MulticlassPerceptron",
    "models.polynomial": "PolynomialRegression",
    "models.regression": "LinearRegression Ridge Lasso ElasticNet",
    "models.ridge_cv": "RidgeCV",
    "models.robust": "HuberRegressor LADRegressor QuantileRegressor ChebyshevRegressor",
    "models.separability": "Separability",
    "models.sgd": "SGDRegressor SGDClassifier",
    "models.stagewise": "ForwardStagewise",
    "models.svm": "LinearSVC LinearSVR",
    "models.svm_losses": "SquaredEpsilonInsensitive",
    "models.tree": "DecisionTreeClassifier DecisionTreeRegressor",
    "models.tree_cv": "DecisionTreeClassifierCV DecisionTreeRegressorCV",
    "models.tree_growing": "TreeArrays Categories=TreeCategories",
    "models.tree_pruning": "PruningPath",
    "models.tree_rules": "LeafInterval",
    "optimization.gradient": "GradientDescent",
    "persistence": "ModelFile",
    "representation.binning": "Binner",
    "representation.encoding": "TableEncoder",
    "representation.monomials": "PolynomialFeatures",
    "representation.pieces": "Discretizer SplineBasis",
    "representation.rbf": "RBFFeatures",
    "representation.saturation": "LogTransform Saturation",
    "representation.scaling": "StandardScaler MinMaxScaler Normalizer",
}


def _pairs(module: str, classes: str) -> dict[str, str]:
    pairs = (item.rpartition("=")[::2] for item in classes.split())
    return {f"certifit.{module}.{old or new.rpartition('.')[2]}": new for old, new in pairs}


FORMAT1 = {old: new for module, classes in _CLASSES.items() for old, new in _pairs(module, classes).items()}
"""Name of a class in format 1 → its name since format 2."""
