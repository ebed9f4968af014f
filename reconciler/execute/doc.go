// Package execute executes one action on one cluster: by API calls, requests to the
// members, and what it writes into the record before and after them. Each action is
// idempotent, asks for the lease first, and is done only to the very objects that the
// decision was made on. What is due is not for it to say: it never plans.
package execute
