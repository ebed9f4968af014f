// Package clouds has the drivers of all object stores that quorate supports. It links their SDKs, so that only programs
// and tests that reach such stores import it.
package clouds

import (
	"github.com/quorate/quorate/reconciler/backup/azurestore"
	"github.com/quorate/quorate/reconciler/backup/driver"
	"github.com/quorate/quorate/reconciler/backup/googlestore"
	"github.com/quorate/quorate/reconciler/backup/s3store"
)

// Drivers returns the drivers of all stores but directories, which package backup has itself.
func Drivers() driver.Set {
	return driver.Set{"s3": s3store.Driver{}, "gs": googlestore.Driver{}, "azblob": azurestore.Driver{}}
}
