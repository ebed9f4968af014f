package reconciler

import (
	"context"
)

var _ = context.Background
