package state

import "errors"

// ErrChanged says that the world moved between the decision and the action.
var ErrChanged = errors.New("the cluster changed between the decision and the action; quorate retries")
