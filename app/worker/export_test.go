package worker

// Reconcile is for tests of what is told to the gate too late.
var Reconcile = reconcile
