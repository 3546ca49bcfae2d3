// Command kubenode has every Kubernetes program that a cluster of one node needs. The programs share nearly all of their code, so
// six binaries would take six times the disk and twice the time to build.
//
// The name of the file, or else the first argument, chooses the program.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	// The import registers the JSON log format, as the main package of each program does.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-proxy":              proxy.NewProxyCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	called := filepath.Base(os.Args[0])
	if programs[called] == nil && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		called = os.Args[0]
	}
	program := programs[called]
	if program == nil {
		names := strings.Join(slices.Sorted(maps.Keys(programs)), ", ")
		fmt.Fprintf(os.Stderr, "kubenode: there is no program %q; the programs are %s\n", called, names)
		os.Exit(2)
	}
	os.Exit(cli.Run(program()))
}
