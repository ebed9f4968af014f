// Package deploy renders the kustomizations of deploy/ and of overlays on top of them,
// with the library that kubectl uses, and checks what would be applied.
//
// It is a module of its own, so that the product's go.mod does not know kustomize.
package deploy
