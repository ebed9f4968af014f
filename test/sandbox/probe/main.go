// Command probe is what the sandbox's tests run in pods: images here have no
// shell, so each thing a test asks of a pod is a subcommand.
//
//	probe serve ADDRESS           answer every HTTP request with the pod's host name
//	probe get URL                 print what the URL answers
//	probe lookup NAME             print the addresses of a DNS name
//	probe write PATH BYTES        write a file of this size and sync it
//	probe read PATH               print how many bytes a file has
//	probe sleep                   wait until told to end
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch strings.Join(args[:min(1, len(args))], "") + " " + strconv.Itoa(len(args)) {
	case "serve 2":
		return serve(ctx, args[1])
	case "get 2":
		return get(ctx, args[1])
	case "lookup 2":
		return lookup(ctx, args[1])
	case "write 3":
		return write(args[1], args[2])
	case "read 2":
		return read(args[1])
	case "sleep 1":
		<-ctx.Done()
		return nil
	default:
		return errors.New("usage: probe serve ADDRESS | get URL | lookup NAME | write PATH BYTES | read PATH | sleep")
	}
}

func serve(ctx context.Context, address string) error {
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read host name: %w", err)
	}
	server := http.Server{
		Addr:              address,
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, name)
		}),
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func get(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	return nil
}

func lookup(ctx context.Context, name string) error {
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return fmt.Errorf("lookup: %w", err)
	}
	fmt.Println(strings.Join(addresses, "\n"))
	return nil
}

// write writes zeros, then syncs, so that a full disk shows here and not later.
func write(path, size string) error {
	bytes, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if _, err := io.Copy(file, io.LimitReader(zeros{}, bytes)); err != nil {
		return errors.Join(fmt.Errorf("write: %w", err), file.Close())
	}
	return errors.Join(file.Sync(), file.Close())
}

func read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	defer file.Close()
	bytes, err := io.Copy(io.Discard, file)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	fmt.Println(bytes)
	return nil
}

// zeros is an endless reader of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
