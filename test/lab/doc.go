// Package lab is what the demo, the end-to-end tests and the bench share: a
// Kubernetes cluster, real servers for Git and S3, quorate itself as a process,
// and a load whose every acknowledged write is checked afterwards.
//
// Nothing here knows of testing.T, so that a program can use it as well. What a
// function starts ends with its Stop or Close; a process also ends with the
// process that started it.
//
// Environment:
//
//	KUBECONFIG           the cluster; without it the sandbox's
//	QUORATE_SANDBOX      path of the sandbox binary (test/sandbox); bin/sandbox by default
//	QUORATE_HOST         this machine's address as pods see it; found out by default
//	QUORATE              path of a quorate binary; built by default
//	QUORATE_IMAGE        quorate's image, where it cannot be loaded into the nodes
//	NO_COLOR             set to anything: no colours
package lab
