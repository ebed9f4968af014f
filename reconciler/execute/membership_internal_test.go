package execute

// Joined is what the tests' etcd calls orders-3 after it was added once.
const Joined = "a3f"
