// Package identity computes the IDs that etcd gives to a new cluster and to its first member. It is apart from
// package restore, so that whoever needs only the IDs does not link etcd's server.
package identity

import (
	"crypto/sha1" //nolint:gosec // etcd derives IDs with it; nothing is protected by it
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/types"
)

// Of returns the IDs, in hexadecimal, of a cluster that is initialized with one member. They follow from the token and
// the peer URL alone: etcd hashes them in NewClusterFromURLsMap of its package membership.
func Of(token, member, peerURL string) (clusterID, memberID string, err error) {
	urls, err := types.NewURLsMap(member + "=" + peerURL)
	if err != nil {
		return "", "", fmt.Errorf("identity of %s: %w", member, err)
	}
	id := hash([]byte(strings.Join(urls[member].StringSlice(), "") + token))
	return hexadecimal(hash(id)), hexadecimal(id), nil
}

// hash returns the ID that etcd makes of data, in eight bytes.
func hash(data []byte) []byte {
	sum := sha1.Sum(data) //nolint:gosec // etcd derives IDs with it; nothing is protected by it
	return sum[:8]
}

func hexadecimal(id []byte) string { return strconv.FormatUint(binary.BigEndian.Uint64(id), 16) }
