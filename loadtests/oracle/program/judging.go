package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type question struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
	Move bool   `json:"move"`
}

type verdict struct {
	Fits    bool   `json:"fits"`
	Plugin  string `json:"plugin,omitempty"`
	Message string `json:"message,omitempty"`
}

// prepared is the part of a scheduling cycle that is the same for all nodes.
type prepared struct {
	uid   string
	pod   *corev1.Pod
	state fwk.CycleState
	nodes *fwk.PreFilterResult
	no    *verdict
}

func (c *cluster) judge(questions []question, decided []string) ([]verdict, error) {
	if err := c.reset(decided); err != nil {
		return nil, err
	}
	verdicts := make([]verdict, 0, len(questions))
	var cycle *prepared
	for _, asked := range questions {
		if cycle == nil || cycle.uid != asked.Pod {
			var err error
			if cycle, err = c.prepare(asked.Pod); err != nil {
				return nil, err
			}
		}
		if asked.Node == "" {
			if !asked.Move {
				return nil, fmt.Errorf("a question about pod %q without a node", asked.Pod)
			}
			c.pods[cycle.uid] = cycle.pod
			verdicts, cycle = append(verdicts, verdict{Fits: true}), nil
			continue
		}
		given, err := c.filter(cycle, asked.Node)
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, given)
		if asked.Move {
			c.place(cycle, asked.Node)
			cycle = nil
		}
	}
	return verdicts, nil
}

// prepare takes the pod away and runs what comes before the nodes are filtered.
func (c *cluster) prepare(uid string) (*prepared, error) {
	pod, known := c.pods[uid]
	if !known {
		return nil, fmt.Errorf("no pod with UID %q was loaded", uid)
	}
	pod, err := c.replacement(pod)
	if err != nil {
		return nil, err
	}
	c.look(uid)
	cycle := &prepared{uid: uid, pod: pod, state: framework.NewCycleState()}
	for _, plugin := range c.framework.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(c.ctx, pod); !status.IsSuccess() {
			cycle.no = refusal(status.WithPlugin(plugin.Name()))
			return cycle, nil
		}
	}
	result, status, _ := c.framework.RunPreFilterPlugins(c.ctx, cycle.state, pod)
	cycle.nodes = result
	if !status.IsSuccess() {
		cycle.no = refusal(status)
	}
	return cycle, nil
}

func (c *cluster) filter(cycle *prepared, node string) (verdict, error) {
	info, err := c.snapshot.NodeInfos().Get(node)
	if err != nil {
		return verdict{}, err
	}
	if cycle.no != nil {
		return *cycle.no, nil
	}
	if !cycle.nodes.AllNodes() && !cycle.nodes.NodeNames.Has(node) {
		return verdict{Plugin: "PreFilter", Message: "a plugin allows only other nodes"}, nil
	}
	if status := c.framework.RunFilterPluginsWithNominatedPods(c.ctx, cycle.state, cycle.pod, info); !status.IsSuccess() {
		return *refusal(status), nil
	}
	return verdict{Fits: true}, nil
}

func (c *cluster) place(cycle *prepared, node string) {
	placed := cycle.pod.DeepCopy()
	placed.Spec.NodeName = node
	placed.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	c.pods[cycle.uid] = placed
}

func refusal(status *fwk.Status) *verdict {
	plugin := status.Plugin()
	if status.Code() == fwk.Error {
		plugin += " (error)"
	}
	return &verdict{Plugin: strings.TrimSpace(plugin), Message: strings.Join(status.Reasons(), "; ")}
}
