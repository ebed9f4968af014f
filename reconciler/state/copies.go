package state

import "time"

// ClientCopy is a Secret with the certificate of an application in another namespace than the
// cluster's that is not as Git says.
type ClientCopy struct {
	Secret, Namespace string
	// Why it is to be written or deleted, in words, such as "is missing".
	Why string
	// Unwanted says that it is to be deleted.
	Unwanted bool
	// Refused is why it could not be, nil where it was not tried.
	Refused *Refusal
}

// Object is the copy by its namespace and name.
func (c ClientCopy) Object() string { return c.Namespace + "/" + c.Secret }

// Due reports whether it is to be written or deleted now, and not later.
func (c ClientCopy) Due(now time.Time) bool {
	return c.Refused == nil || !c.Refused.Until.After(now)
}
