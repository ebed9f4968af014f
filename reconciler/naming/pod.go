package naming

// The containers of a member's pod.
const (
	// ContainerEtcd is the name of the container that runs etcd.
	ContainerEtcd = "etcd"
	// ContainerGuard is the name of the init container that checks the volume
	// before etcd may start.
	ContainerGuard = "guard"
)

// Where things are in a member's pod.
const (
	VolumePath = "/var/lib/etcd"
	RecordPath = "/etc/quorate/record"
)

// NonRootID is the user and group "nonroot" of distroless images.
const NonRootID = 65532

// The volumes with certificates; a pod without them speaks clear text.
const (
	ServerTLSVolume = "tls-server"
	PeerTLSVolume   = "tls-peer"
	// TrustVolume has what the member trusts, once the authorities have changed. Before,
	// that is in the two others.
	TrustVolume = "tls-trust"
)
