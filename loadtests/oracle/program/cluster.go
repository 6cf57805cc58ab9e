package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	schedulerconfigv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

func silenceLogs() {
	klog.SetLogger(klog.Logger{})
}

// objects are what the API server accepted.
type objects struct {
	pods   []*corev1.Pod
	nodes  []*corev1.Node
	others []runtime.Object
}

func (o *objects) add(object runtime.Object) {
	switch object := object.(type) {
	case *corev1.Pod:
		o.pods = append(o.pods, object)
	case *corev1.Node:
		o.nodes = append(o.nodes, object)
	default:
		o.others = append(o.others, object)
	}
}

// cluster is the default profile with its plugins. Its informers are never started: their stores are filled by hand, so
// that nothing happens at an unknown time.
type cluster struct {
	cancel    context.CancelFunc
	ctx       context.Context
	framework framework.Framework
	claims    cache.Indexer
	snapshot  *movingSnapshot
	loaded    objects
	// pods by UID, as the questions so far have placed them.
	pods map[string]*corev1.Pod
	// decided are pods by UID whose nomination does not count.
	decided sets.Set[string]
}

// movingSnapshot is handed to the plugins once and replaced whenever a pod is taken away or put somewhere.
type movingSnapshot struct {
	*schedulercache.Snapshot
}

func newCluster(given objects) (*cluster, error) {
	ctx, cancel := context.WithCancel(context.Background())
	made := &cluster{cancel: cancel, ctx: ctx, loaded: given}
	made.snapshot = &movingSnapshot{schedulercache.NewEmptySnapshot()}
	if err := made.start(); err != nil {
		cancel()
		return nil, err
	}
	return made, nil
}

func (c *cluster) close() {
	if c != nil {
		c.cancel()
	}
}

// start does as scheduler.New does, for one profile and without a queue.
func (c *cluster) start() error {
	profile, err := defaultProfile()
	if err != nil {
		return err
	}
	metrics.Register()
	client := fake.NewClientset()
	informerFactory := informers.NewSharedInformerFactory(client, 0)
	draManager, err := newDRAManager(c.ctx, informerFactory)
	if err != nil {
		return err
	}
	csiNodes := informerFactory.Storage().V1().CSINodes().Lister()
	c.framework, err = frameworkruntime.NewFramework(c.ctx, plugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(informerFactory),
		frameworkruntime.WithSharedDRAManager(draManager),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(csiNodes)),
		frameworkruntime.WithSnapshotSharedLister(c.snapshot),
		frameworkruntime.WithPodNominator(nominator{c}),
	)
	if err != nil {
		return err
	}
	c.claims = informerFactory.Core().V1().PersistentVolumeClaims().Informer().GetIndexer()
	return fill(informerFactory, c.loaded.others)
}

func defaultProfile() (*schedulerconfig.KubeSchedulerProfile, error) {
	var versioned schedulerconfigv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var config schedulerconfig.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &config, nil); err != nil {
		return nil, err
	}
	return &config.Profiles[0], nil
}

// newDRAManager knows no devices: claims of dynamic resources are not part of the comparison.
func newDRAManager(ctx context.Context, factory informers.SharedInformerFactory) (fwk.SharedDRAManager, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.DynamicResourceAllocation) {
		return nil, nil
	}
	claims := factory.Resource().V1().ResourceClaims().Informer()
	claimCache := assumecache.NewAssumeCache(klog.FromContext(ctx), claims, "ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: factory.Resource().V1().ResourceSlices()})
	if err != nil {
		return nil, err
	}
	return dynamicresources.NewDRAManager(ctx, claimCache, slices, factory), nil
}

func fill(factory informers.SharedInformerFactory, given []runtime.Object) error {
	core, storage := factory.Core().V1(), factory.Storage().V1()
	for _, object := range given {
		var informer cache.SharedIndexInformer
		switch object.(type) {
		case *corev1.Namespace:
			informer = core.Namespaces().Informer()
		case *corev1.PersistentVolume:
			informer = core.PersistentVolumes().Informer()
		case *corev1.PersistentVolumeClaim:
			informer = core.PersistentVolumeClaims().Informer()
		case *storagev1.StorageClass:
			informer = storage.StorageClasses().Informer()
		case *storagev1.CSINode:
			informer = storage.CSINodes().Informer()
		case *storagev1.CSIDriver:
			informer = storage.CSIDrivers().Informer()
		case *storagev1.CSIStorageCapacity:
			informer = storage.CSIStorageCapacities().Informer()
		case *storagev1.VolumeAttachment:
			informer = storage.VolumeAttachments().Informer()
		default:
			return fmt.Errorf("no informer for %T", object)
		}
		if err := informer.GetIndexer().Add(object); err != nil {
			return err
		}
	}
	return nil
}

// nominator has the pods that wait for the node they were promised (status.nominatedNodeName).
type nominator struct{ cluster *cluster }

func (nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (nominator) DeleteNominatedPodIfExists(*corev1.Pod)                        {}
func (nominator) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo)      {}
func (n nominator) NominatedPodsForNode(node string) []fwk.PodInfo {
	var found []fwk.PodInfo
	for uid, pod := range n.cluster.pods {
		if n.cluster.decided.Has(uid) {
			continue
		}
		if pod.Spec.NodeName == "" && pod.Status.NominatedNodeName == node && !finished(pod) {
			if info, err := framework.NewPodInfo(pod); err == nil {
				found = append(found, info)
			}
		}
	}
	return found
}

// reset puts every pod and claim where it was loaded.
func (c *cluster) reset(decided []string) error {
	c.decided = sets.New(decided...)
	c.pods = make(map[string]*corev1.Pod, len(c.loaded.pods))
	for _, pod := range c.loaded.pods {
		c.pods[string(pod.UID)] = pod
	}
	var claims []any
	for _, object := range c.loaded.others {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
			claims = append(claims, claim)
		}
	}
	return c.claims.Replace(claims, "")
}

// look makes the snapshot that a scheduling cycle would see, without one pod. Pods of a node that is gone are not in it.
func (c *cluster) look(without string) {
	known := make(map[string]bool, len(c.loaded.nodes))
	for _, node := range c.loaded.nodes {
		known[node.Name] = true
	}
	var pods []*corev1.Pod
	for uid, pod := range c.pods {
		if uid != without && known[pod.Spec.NodeName] && !finished(pod) {
			pods = append(pods, pod)
		}
	}
	c.snapshot.Snapshot = schedulercache.NewSnapshot(pods, c.loaded.nodes)
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// replacement is the pod that a controller would create for one that runs: from the same template, without a history. A
// pod that waits for a node is its own replacement.
func (c *cluster) replacement(pod *corev1.Pod) (*corev1.Pod, error) {
	if pod.Spec.NodeName == "" {
		return pod, nil
	}
	made := pod.DeepCopy()
	made.DeletionTimestamp = nil
	made.Spec.NodeName = ""
	made.Status = corev1.PodStatus{Phase: corev1.PodPending}
	for _, volume := range made.Spec.Volumes {
		if volume.Ephemeral == nil {
			continue
		}
		if err := c.claims.Update(newClaim(made, volume)); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// newClaim is what the ephemeral volume controller creates for a new pod; nobody has bound it yet.
func newClaim(pod *corev1.Pod, volume corev1.Volume) *corev1.PersistentVolumeClaim {
	template := volume.Ephemeral.VolumeClaimTemplate
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	claim.Name, claim.Namespace = ephemeral.VolumeClaimName(pod, &volume), pod.Namespace
	claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
	claim.Status.Phase = corev1.ClaimPending
	return claim
}
