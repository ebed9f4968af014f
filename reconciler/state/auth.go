package state

import (
	"fmt"
	"time"
)

// Auth is what was found of users, roles and authentication.
type Auth struct {
	// At is when etcd was asked.
	At time.Time
	// Problem is why that is not known; "" where the rest can be trusted.
	Problem string
	// Enabled says that authentication is on.
	Enabled bool
	// NoAccess is why quorate would not be let in as user root once authentication is on;
	// "" where its certificate and the members' flags say that it is.
	NoAccess string
	// Roles are the permissions of the roles that the file lists and that are there, and
	// Users the roles of the users, user root among them.
	Roles map[string][]Permission
	Users map[string][]string
	// OtherRoles and OtherUsers are those that the file does not list.
	OtherRoles, OtherUsers []string
	// Passwords is what is known of how each listed user comes in.
	Passwords map[string]PasswordState
	// NoSecret is why the password of a listed user cannot be read, by user.
	NoSecret map[string]string
}

// PasswordState is what is known of how a user comes in.
type PasswordState string

// The states of a password. A user without one in the file has none in etcd, either.
const (
	// PasswordUnknown means that it was not tried: etcd tells only while authentication is on.
	PasswordUnknown PasswordState = ""
	// PasswordRight means that the user comes in as the file says, and not otherwise.
	PasswordRight PasswordState = "right"
	// PasswordWrong means that the user has another password.
	PasswordWrong PasswordState = "wrong"
	// PasswordOtherKind means that the user has a password and should have none, or has none
	// and should have one. etcd cannot change that of a user.
	PasswordOtherKind PasswordState = "of the other kind"
)

// Permission lets a role do something with the keys from Key up to, and not including, End:
// Key alone where End is "", and all behind it where End is "\x00".
type Permission struct{ Access, Key, End string }

// The kinds of access, in etcd's words.
const (
	AccessRead      = "READ"
	AccessWrite     = "WRITE"
	AccessReadWrite = "READWRITE"
)

// String is the permission for people.
func (p Permission) String() string {
	access := map[string]string{AccessRead: "read", AccessWrite: "write", AccessReadWrite: "read and write"}[p.Access]
	switch {
	case p.Key == "\x00" && p.End == "\x00":
		return access + " every key"
	case p.End == "":
		return fmt.Sprintf("%s %q", access, p.Key)
	case p.End == "\x00":
		return fmt.Sprintf("%s all from %q", access, p.Key)
	case p.End == behind(p.Key):
		return fmt.Sprintf("%s %q*", access, p.Key)
	}
	return fmt.Sprintf("%s from %q to %q", access, p.Key, p.End)
}

// behind is the first key that does not begin with another one, where that ends in no 0xff.
func behind(key string) string {
	last := len(key) - 1
	if last < 0 || key[last] == 0xff {
		return ""
	}
	return key[:last] + string([]byte{key[last] + 1})
}

// AuthOp is one kind of change of users, roles and authentication.
type AuthOp string

// The changes.
const (
	AddRole          AuthOp = "AddRole"
	GrantPermission  AuthOp = "GrantPermission"
	RevokePermission AuthOp = "RevokePermission"
	DeleteRole       AuthOp = "DeleteRole"
	AddUser          AuthOp = "AddUser"
	// RenewUser deletes a user and adds it again with its roles: one that should have a
	// password and has none, or the other way round, which etcd cannot change; and, while
	// authentication is off, one of which nobody knows how it comes in.
	RenewUser   AuthOp = "RenewUser"
	SetPassword AuthOp = "SetPassword"
	GrantRole   AuthOp = "GrantRole"
	RevokeRole  AuthOp = "RevokeRole"
	DeleteUser  AuthOp = "DeleteUser"
	EnableAuth  AuthOp = "EnableAuth"
	DisableAuth AuthOp = "DisableAuth"
)

// AuthChange is one change. It names what it is about, and nothing secret.
type AuthChange struct {
	Op         AuthOp
	User, Role string
	// Roles are those of a user that is renewed.
	Roles []string
	// Permission is what is granted, or revoked.
	Permission Permission
}

// String names the change in a few words.
func (c AuthChange) String() string {
	switch c.Op {
	case AddRole:
		return "add role " + c.Role
	case GrantPermission:
		return fmt.Sprintf("let role %s %s", c.Role, c.Permission)
	case RevokePermission:
		return fmt.Sprintf("no longer let role %s %s", c.Role, c.Permission)
	case DeleteRole:
		return "delete role " + c.Role
	case AddUser:
		return "add user " + c.User
	case RenewUser:
		return "add user " + c.User + " anew"
	case SetPassword:
		return "set the password of user " + c.User
	case GrantRole:
		return "give user " + c.User + " role " + c.Role
	case RevokeRole:
		return "take role " + c.Role + " from user " + c.User
	case DeleteUser:
		return "delete user " + c.User
	case EnableAuth:
		return "enable authentication"
	case DisableAuth:
		return "disable authentication"
	}
	return string(c.Op)
}
