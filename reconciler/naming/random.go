package naming

import (
	"crypto/rand"
	"encoding/hex"
)

// Random returns n random bytes in hexadecimal.
func Random(n int) (string, error) {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}
