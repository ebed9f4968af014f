// Package follow is Git in: it polls the repository, decides which commit is accepted,
// stores that in the cluster, and hands what it declares to a Target. Here belongs
// whatever decides between a commit and the desired state: trust, the limit of changes,
// pauses between polls. What documents mean is in package desired, how Git is read in
// package sources, and what is written to Git in package publish.
package follow
