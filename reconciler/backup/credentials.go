package backup

import (
	"net/http"

	"github.com/quorate/quorate/reconciler/backup/driver"
)

// access is how the store's driver reaches it.
func (st Store) access() driver.Access {
	return driver.Access{Credentials: st.Credentials, CA: st.CA}
}

// FromEnvironment reports whether the credentials are the process's own: no Secret was
// given, or one that has a CA and nothing else. A Secret that lacks what a store
// needs must not make quorate use another account.
func (st Store) FromEnvironment() bool { return st.access().FromEnvironment() }

// Authority has the certificates of the CAs that the store needs besides the
// system's, in PEM; empty for none.
func (st Store) Authority() []byte { return st.access().Authority() }

// Trusting is a transport of its own that trusts the CAs, in PEM, besides the
// system's; nil where that holds no certificate.
func Trusting(ca []byte) *http.Transport { return driver.Trusting(ca) }
