"""Tumors: a grid over a pipeline, trees of several kinds, and how often each is right on rows that it has not seen."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
pipeline = Pipeline([("scale", StandardScaler()), ("logistic", LogisticRegression(max_iter=500))])
grid = GridSearchCV(pipeline, {"logistic__C": [0.01, 0.1, 1.0, 10.0]}, cv=5, scoring="neg_log_loss").fit(
    X_train, y_train
)
print("C", grid.best_params_["logistic__C"])
print("log_loss", -grid.best_score_)
print("logistic_auc", roc_auc_score(y_test, grid.predict_proba(X_test)[:, 1]))
print("bayes_auc", roc_auc_score(y_test, GaussianNB().fit(X_train, y_train).predict_proba(X_test)[:, 1]))
print("tree_accuracy", DecisionTreeClassifier(max_depth=2, random_state=0).fit(X_train, y_train).score(X_test, y_test))
for name, model in (
    ("forest", RandomForestClassifier(n_estimators=50, random_state=0)),
    ("boosting", HistGradientBoostingClassifier(max_iter=30, random_state=0)),
    ("adaboost", AdaBoostClassifier(n_estimators=20, random_state=0)),
):
    model.fit(X_train, y_train)
    print(f"{name}_auc", roc_auc_score(y_test, model.predict_proba(X_test)[:, 1]))
    if name == "forest":
        print("important", int(np.argsort(model.feature_importances_)[-5:].size))
