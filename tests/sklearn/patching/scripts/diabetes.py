"""Which lasso for the diabetes data: cross-validation along the path, against ridge and least squares."""

from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV, LinearRegression, RidgeCV
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
lasso = make_pipeline(StandardScaler(), LassoCV(cv=10)).fit(X_train, y_train)
print("alpha", lasso[-1].alpha_)
print("columns", int((lasso[-1].coef_ != 0).sum()))
for name, model in (
    ("lasso", lasso),
    ("ridge", make_pipeline(StandardScaler(), RidgeCV(alphas=[0.1, 1.0, 10.0, 100.0])).fit(X_train, y_train)),
    ("squares", LinearRegression().fit(X_train, y_train)),
):
    predicted = model.predict(X_test)
    print(f"{name}_error", mean_squared_error(y_test, predicted))
    print(f"{name}_r2", r2_score(y_test, predicted))
print("folds_r2", cross_val_score(LinearRegression(), X, y, cv=5).mean())
