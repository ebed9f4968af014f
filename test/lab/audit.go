package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Right is one verb on one kind of object.
type Right struct{ Verb, Group, Resource string }

func (r Right) String() string {
	return r.Verb + " " + strings.TrimPrefix(r.Group+"/"+r.Resource, "/")
}

// auditEvent is what is read of an event of the API server's audit log.
type auditEvent struct {
	Verb                                     string
	User                                     auditUser
	ImpersonatedUser                         auditUser
	ObjectRef                                struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	RequestReceivedTimestamp, StageTimestamp time.Time
	ResponseStatus                           struct{ Code int }
	Annotations                              map[string]string
}

// verbs are those that the request needs. An apply that makes an object needs create as well, and
// where the API server does not stream the first list of a watch, it is asked for that list.
func (e auditEvent) verbs() []string {
	switch {
	case e.Verb == "patch" && e.ResponseStatus.Code == http.StatusCreated:
		return []string{"patch", "create"}
	case e.Verb == "watch":
		return []string{"watch", "list"}
	}
	return []string{e.Verb}
}

type auditUser struct{ Username string }

// isQuorate reports whether it is a user of Rights, or the service account of an Overlay.
func (u auditUser) isQuorate() bool {
	return strings.HasPrefix(u.Username, testUser) ||
		strings.HasPrefix(u.Username, "system:serviceaccount:") && strings.HasSuffix(u.Username, ":quorate")
}

// Unused are the rights of deploy/base that quorate has not used since the sandbox came up, by
// the audit log of its API server. They may be more than quorate needs, or a test is missing.
func (c *Cluster) Unused(ctx context.Context) (unused []Right, err error) {
	used, err := c.used(ctx)
	if err != nil {
		return nil, err
	}
	granted, err := granted()
	for _, r := range granted {
		if !used[r] {
			unused = append(unused, r)
		}
	}
	return unused, err
}

// used are the rights by which the API server has let quorate do something.
func (c *Cluster) used(ctx context.Context) (map[Right]bool, error) {
	used := map[Right]bool{}
	return used, c.readAudit(ctx, func(e auditEvent) {
		let := e.Annotations["authorization.k8s.io/decision"] == "allow"
		if let && e.ObjectRef.Subresource == "" && (e.User.isQuorate() || e.ImpersonatedUser.isQuorate()) {
			for _, verb := range e.verbs() {
				used[Right{verb, e.ObjectRef.APIGroup, e.ObjectRef.Resource}] = true
			}
		}
	})
}

// Write is a change that a user of Rights has made, by the API server's audit log.
type Write struct {
	User, Verb, Resource, Name string
	// From and To are when the API server got the request and when it had answered it.
	From, To time.Time
}

// WritesIn are the changes of objects in a namespace that users of Rights have made.
func (c *Cluster) WritesIn(ctx context.Context, namespace string) (writes []Write, err error) {
	return writes, c.readAudit(ctx, func(e auditEvent) {
		changes := slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb)
		if changes && e.ObjectRef.Namespace == namespace && e.ImpersonatedUser.isQuorate() && e.ResponseStatus.Code < http.StatusBadRequest {
			writes = append(writes, Write{e.ImpersonatedUser.Username, e.Verb, e.ObjectRef.Resource, e.ObjectRef.Name, e.RequestReceivedTimestamp, e.StageTimestamp})
		}
	})
}

// readAudit reads the API server's audit log.
func (c *Cluster) readAudit(ctx context.Context, each func(auditEvent)) error {
	if c.Sandbox == nil {
		return errors.New("only the sandbox has an audit log that can be read")
	}
	status, err := c.Sandbox.Status(ctx)
	if err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(status.Dir, "logs", "audit.log"))
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	for events := json.NewDecoder(file); ; {
		var e auditEvent
		switch err := events.Decode(&e); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // the last one is being written
			return nil
		case err != nil:
			return fmt.Errorf("read the audit log: %w", err)
		}
		each(e)
	}
}

// granted are the rights that deploy/base gives quorate.
func granted() (all []Right, err error) {
	for file, names := range map[string][]string{"clusterrole.yaml": {inNamespaces, clusterScoped}, "role.yaml": {inNamespaces}} {
		for _, name := range names {
			var role rbacv1.ClusterRole
			if err := readDeployed(file, name, &role); err != nil {
				return nil, err
			}
			for _, rule := range role.Rules {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							all = append(all, Right{verb, group, resource})
						}
					}
				}
			}
		}
	}
	return all, nil
}
