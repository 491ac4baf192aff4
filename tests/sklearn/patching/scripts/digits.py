"""Recognizing hand-written digits: a support vector machine learns from the first half and is judged on the second."""

from sklearn import datasets, metrics, svm
from sklearn.model_selection import train_test_split

digits = datasets.load_digits()
data = digits.images.reshape((len(digits.images), -1))
X_train, X_test, y_train, y_test = train_test_split(data, digits.target, test_size=0.5, shuffle=False)
classifier = svm.SVC(gamma=0.001)
classifier.fit(X_train, y_train)
predicted = classifier.predict(X_test)
confusion = metrics.confusion_matrix(y_test, predicted)
print("accuracy", metrics.accuracy_score(y_test, predicted))
print("f1", metrics.f1_score(y_test, predicted, average="macro"))
print("support_vectors", classifier.n_support_.sum())
print("most_often_wrong", confusion.sum(axis=1).tolist().index(confusion.sum(axis=1).max()))
