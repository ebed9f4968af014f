// Package convert turns the manifests of two earlier etcd operators into
// quorate's files:
//
//	etcd.database.coreos.com/v1beta1, v1beta2   EtcdCluster, EtcdBackup, EtcdRestore
//	etcd.improbable.io/v1alpha1                 EtcdCluster, EtcdBackup, EtcdBackupSchedule, EtcdRestore
//
// An etcd of another operator is left out, as a comment that holds all of it.
//
// Nothing of a spec is dropped in silence: each field is converted or becomes a
// note, which is a comment where it matters. A document that cannot say
// what the old one said is written as a comment, with the reason; every other
// one is known to be good, because it went through schema.Parse.
//
// The package is pure: bytes in, documents and notes out.
package convert
