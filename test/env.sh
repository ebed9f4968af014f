# Sourced by the Makefile before whatever needs a cluster: where the sandbox is
# and where its tools are. Without a sandbox, KUBECONFIG stays as it is.
sandbox="$PWD/bin/sandbox"
if "$sandbox" preflight >/dev/null 2>&1; then
	KUBECONFIG=$("$sandbox" up 2>/dev/null | sed -n 's/^export KUBECONFIG=//p')
	QUORATE_SANDBOX=$sandbox
	QUORATE_VERSITYGW=$("$sandbox" exec-path versitygw)
	export KUBECONFIG QUORATE_SANDBOX QUORATE_VERSITYGW
fi
