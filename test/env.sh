# Sourced by the Makefile before whatever needs a cluster: where the sandbox is,
# whether it is up or not. Without a sandbox, KUBECONFIG stays as it is.
sandbox="$PWD/bin/sandbox"
if "$sandbox" preflight >/dev/null 2>&1; then
	KUBECONFIG=$("$sandbox" status | sed -n 's/^export KUBECONFIG=//p')
	QUORATE_SANDBOX=$sandbox
	export KUBECONFIG QUORATE_SANDBOX
fi
