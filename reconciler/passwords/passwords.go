// Package passwords reads the passwords of etcd's users from Secrets, and keeps the one by which
// quorate itself comes in as user root where no certificate lets it in.
//
// The Secret in the file may change at any time, and etcd has one password for each user. So quorate
// keeps, in a Secret of its own, each password that root may have: it is noted before etcd is asked
// to take it, and the others are dropped when etcd has. Whatever is killed or changed in between, one
// of them lets quorate in.
package passwords

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Of is the password of a user that the file lists, or of user root, from the API server itself. has
// is false for a user without one, and why tells a person why it cannot be read.
func Of(ctx context.Context, client kubernetes.Interface, c desired.Cluster, user string) (password etcd.Password, has bool, why string, err error) {
	from, ns := secretOf(c.Spec.Auth, user), c.Metadata.Namespace
	if from.Name == "" {
		return "", false, "", nil
	}
	secret, err := kube.FoundOrNil(client.CoreV1().Secrets(ns).Get(ctx, from.Name, metav1.GetOptions{}))
	switch {
	case err != nil:
		return "", false, "", fmt.Errorf("read Secret %s: %w", from.Name, err)
	case secret == nil:
		return "", false, fmt.Sprintf("create the Secret %s/%s with the key %s and the label %s=%s", ns, from.Name, from.KeyOrDefault(), naming.LabelUse, naming.UsePasswords), nil
	}
	if err := kube.AllowedFor(secret, naming.UsePasswords); err != nil {
		return "", false, err.Error(), nil
	}
	if len(secret.Data[from.KeyOrDefault()]) == 0 {
		return "", false, fmt.Sprintf("the Secret %s/%s has nothing at the key %s: put the password there", ns, from.Name, from.KeyOrDefault()), nil
	}
	return etcd.Password(secret.Data[from.KeyOrDefault()]), true, "", nil
}

// secretOf is where the file says that a user's password is.
func secretOf(auth *schema.AuthSpec, user string) schema.AuthPasswordSecret {
	if auth == nil {
		return schema.AuthPasswordSecret{}
	}
	if user == schema.AuthRoot {
		return auth.RootPasswordSecret
	}
	for _, u := range auth.Users {
		if u.Name == user {
			return u.PasswordSecret
		}
	}
	return schema.AuthPasswordSecret{}
}

// Root are the passwords that user root may have: that of the Secret in the file, where it can be
// read, and those that are kept. What the file says by now of authentication does not matter.
func Root(ctx context.Context, client kubernetes.Interface, c desired.Cluster) ([]etcd.Password, error) {
	var all []etcd.Password
	password, has, _, err := Of(ctx, client, c, schema.AuthRoot)
	if err != nil {
		return nil, err
	}
	if has {
		all = append(all, password)
	}
	secret, err := read(ctx, client, c)
	if err != nil {
		return nil, err
	}
	return with(all, kept(secret)...), nil
}

// Keep notes a password before etcd is asked to take it, beside those that root may have by now.
func Keep(ctx context.Context, client kubernetes.Interface, c desired.Cluster, password etcd.Password) error {
	secret, err := read(ctx, client, c)
	if err != nil {
		return err
	}
	return write(ctx, client, c, secret, with([]etcd.Password{password}, kept(secret)...))
}

// Settle drops all passwords but the one that etcd has taken.
func Settle(ctx context.Context, client kubernetes.Interface, c desired.Cluster, password etcd.Password) error {
	secret, err := read(ctx, client, c)
	if err != nil {
		return err
	}
	return write(ctx, client, c, secret, []etcd.Password{password})
}

// Settled reports whether a password, and no other, is kept.
func Settled(ctx context.Context, client kubernetes.Interface, c desired.Cluster, password etcd.Password) (bool, error) {
	secret, err := read(ctx, client, c)
	return err == nil && slices.Equal(kept(secret), []etcd.Password{password}), err
}

// read is the Secret in which root's passwords are kept, nil for none.
func read(ctx context.Context, client kubernetes.Interface, c desired.Cluster) (*corev1.Secret, error) {
	name := schema.RootSecret(c.Metadata.Name)
	secret, err := kube.FoundOrNil(client.CoreV1().Secrets(c.Metadata.Namespace).Get(ctx, name, metav1.GetOptions{}))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	case secret != nil && !naming.Owns(secret, c.EtcdCluster):
		return nil, fmt.Errorf("the Secret %s/%s, in which quorate keeps the password of user root, is not quorate's: delete or rename it", c.Metadata.Namespace, name)
	}
	return secret, nil
}

// kept are the passwords in such a Secret, the newest first.
func kept(secret *corev1.Secret) []etcd.Password {
	if secret == nil {
		return nil
	}
	return etcd.Passwords(secret.Data)
}

// with adds to a list what is not in it.
func with(list []etcd.Password, more ...etcd.Password) []etcd.Password {
	for _, p := range more {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// write keeps these passwords, in the Secret that was read. One that has changed since stays.
func write(ctx context.Context, client kubernetes.Interface, c desired.Cluster, secret *corev1.Secret, all []etcd.Password) error {
	if slices.Equal(kept(secret), all) {
		return nil
	}
	data := map[string][]byte{}
	for i, p := range all {
		data[fmt.Sprintf("password-%03d", i)] = []byte(p)
	}
	secrets := client.CoreV1().Secrets(c.Metadata.Namespace)
	var err error
	if secret == nil {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: schema.RootSecret(c.Metadata.Name), Namespace: c.Metadata.Namespace, Labels: naming.ObjectLabels(c.EtcdCluster),
		}, Type: corev1.SecretTypeOpaque, Data: data}
		_, err = secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: naming.FieldManager})
	} else {
		secret = secret.DeepCopy()
		secret.Data = data
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: naming.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", secret.Name, err)
	}
	return nil
}
