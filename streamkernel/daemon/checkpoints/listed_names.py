"""The exact lists of the names that a checkpoint's payload may contain.

River's classes are listed one by one, not by rule: "is it a class of River" would let in data sets, which read files
and the network, and whatever a module of River happens to import. A test walks the installed River and names what is
missing from the list or gone from River.
"""

#: (module, qualified name)
Name = tuple[str, str]


def _names(table: str) -> frozenset[Name]:
    """Read names of River by the part of it that stands before them: ``module.Class``, or ``module:Class.method``."""
    names = set()
    for word in table.split():
        if word.endswith(":"):
            part = word[:-1]
        else:
            modules, _, name = word.rpartition(":" if ":" in word else ".")
            names.add((".".join(filter(None, ["river", part, modules])), name))
    return frozenset(names)


#: Restored without running any code of theirs: an empty instance, then its attributes. River's public and private
#: classes that keep state, without data sets, streams, checks, adapters to other libraries and abstract classes; and
#: without RandomTreesEmbedding, which knows its leaves by their addresses in memory and so cannot be restored.
RIVER_CLASSES = _names(
    """
    active: entropy.EntropySampler
    anomaly: filter.QuantileFilter filter.ThresholdFilter gaussian.GaussianScorer hst.HalfSpaceTrees loda.LODA
        lof.LocalOutlierFactor pad.PredictiveAnomalyDetection sad.StandardAbsoluteDeviation svm.OneClassSVM
    bandit: bayes_ucb.BayesUCB epsilon_greedy.EpsilonGreedy exp3.Exp3 lin_ucb.LinUCBDisjoint random.RandomPolicy
        thompson.ThompsonSampling ucb.UCB
    base: base.Base drift_detector.BinaryDriftAndWarningDetector drift_detector.BinaryDriftDetector
        drift_detector.DriftAndWarningDetector drift_detector.DriftDetector drift_detector._BaseDriftAndWarningDetector
        drift_detector._BaseDriftDetector ensemble.Ensemble ensemble.WrapperEnsemble estimator.Estimator
    cluster: clustream.CluStream clustream.CluStreamMicroCluster dbstream.DBSTREAM dbstream.DBSTREAMMicroCluster
        denstream.DenStream denstream.DenStreamMicroCluster k_means.KMeans odac.ODAC odac.ODACChildren odac.ODACCluster
        streamkmeans.STREAMKMeans textclust.TextClust
    compose: func.FuncTransformer grouper.Grouper pipeline.Pipeline product.TransformerProduct renamer.Prefixer
        renamer.Renamer renamer.Suffixer select.Discard select.Select select.SelectType
        target_transform.TargetTransformRegressor union.TransformerUnion
    conf: interval.Interval jackknife.RegressionJackknife
    covariance: emp.EmpiricalCovariance emp.EmpiricalPrecision ewa.EwaCovariance ewa.EwaPrecision
        ewa.LedoitWolfCovariance ewa.OASCovariance ewa.ShrunkCovariance ewa._EWCovariance ewa._EWMatrix
    drift: adwin.ADWIN binary.ddm.DDM binary.eddm.EDDM binary.fhddm.FHDDM binary.hddm_a.HDDMA binary.hddm_w.HDDMW
        binary.hddm_w.SampleInfo dummy.DummyDriftDetector kswin.KSWIN no_drift.NoDrift page_hinkley.PageHinkley
        retrain.DriftRetrainingClassifier
    dummy: NoChangeClassifier PriorClassifier StatisticRegressor
    ensemble: bagging.ADWINBaggingClassifier bagging.BaggingClassifier bagging.BaggingRegressor bagging.BaseBagging
        bagging.LeveragingBaggingClassifier boosting.ADWINBoostingClassifier boosting.AdaBoostClassifier
        boosting.BOLEClassifier ewa.EWARegressor stacking.StackingClassifier streaming_random_patches.BaseSRPClassifier
        streaming_random_patches.BaseSRPEnsemble streaming_random_patches.BaseSRPEstimator
        streaming_random_patches.BaseSRPRegressor streaming_random_patches.SRPClassifier
        streaming_random_patches.SRPRegressor voting.VotingClassifier
    facto: base.BaseFM ffm.FFM ffm.FFMClassifier ffm.FFMRegressor fm.FM fm.FMClassifier fm.FMRegressor fwfm.FwFM
        fwfm.FwFMClassifier fwfm.FwFMRegressor hofm.HOFM hofm.HOFMClassifier hofm.HOFMRegressor
    feature_extraction: agg.Agg agg.TargetAgg kernel_approx.RBFSampler
        poly.PolynomialExtender vectorize.BagOfWords vectorize.TFIDF vectorize.VectorizerMixin
    feature_selection: k_best.SelectKBest random.PoissonInclusion variance.VarianceThreshold
    forest: adaptive_random_forest.ARFClassifier adaptive_random_forest.ARFRegressor
        adaptive_random_forest.BaseTreeClassifier adaptive_random_forest.BaseTreeRegressor
        aggregated_mondrian_forest.AMFClassifier aggregated_mondrian_forest.AMFRegressor
        online_extra_trees.BaggingSampler online_extra_trees.ConstantSampler online_extra_trees.ETRegressor
        online_extra_trees.OXTRegressor online_extra_trees.SubBaggingSampler
    imblearn: chebyshev.ChebyshevOverSampler chebyshev.ChebyshevUnderSampler hard_sampling.HardSampling
        hard_sampling.HardSamplingClassifier hard_sampling.HardSamplingRegressor random.RandomOverSampler
        random.RandomSampler random.RandomUnderSampler
    linear_model: ad_predictor.AdPredictor alma.ALMAClassifier base.GLM bayesian_lin_reg.BayesianLinearRegression
        lin_reg.LinearRegression log_reg.LogisticRegression pa.BasePA pa.PAClassifier pa.PARegressor
        perceptron.Perceptron softmax.SoftmaxRegression
    metrics: accuracy.Accuracy balanced_accuracy.BalancedAccuracy base.Metrics confusion.ConfusionMatrix
        cross_entropy.CrossEntropy fbeta.F1 fbeta.FBeta fbeta.MacroF1 fbeta.MacroFBeta fbeta.MicroF1 fbeta.MicroFBeta
        fbeta.MultiFBeta fbeta.WeightedF1 fbeta.WeightedFBeta fowlkes_mallows.FowlkesMallows
        geometric_mean.GeometricMean jaccard.Jaccard jaccard.MacroJaccard jaccard.MicroJaccard jaccard.WeightedJaccard
        kappa.CohenKappa log_loss.LogLoss mae.MAE mape.MAPE mcc.MCC mse.MSE mse.RMSE mse.RMSLE
        multioutput.confusion.MultiLabelConfusionMatrix multioutput.exact_match.ExactMatch
        multioutput.macro.MacroAverage multioutput.micro.MicroAverage multioutput.per_output.PerOutput
        multioutput.sample_average.SampleAverage mutual_info.AdjustedMutualInfo mutual_info.MutualInfo
        mutual_info.NormalizedMutualInfo precision.MacroPrecision precision.MicroPrecision precision.Precision
        precision.WeightedPrecision r2.R2 rand.AdjustedRand rand.Rand recall.MacroRecall recall.MicroRecall
        recall.Recall recall.WeightedRecall report.ClassificationReport roc_auc.ROCAUC rolling_pr_auc.RollingPRAUC
        rolling_roc_auc.RollingROCAUC silhouette.Silhouette smape.SMAPE vbeta.Completeness vbeta.Homogeneity vbeta.VBeta
    misc: sdft.SDFT skyline.Skyline zstd_classifier.ZstdClassifier
    model_selection: bandit.BanditClassifier bandit.BanditModelSection bandit.BanditRegressor greedy.GreedyRegressor
        sh.SuccessiveHalvingClassifier sh.SuccessiveHalvingRegressor
    multiclass: occ.OutputCodeClassifier ovo.OneVsOneClassifier ovr.OneVsRestClassifier
    multioutput: chain.BaseChain chain.ClassifierChain chain.MonteCarloClassifierChain
        chain.ProbabilisticClassifierChain chain.RegressorChain encoder.MultiClassEncoder per_output.PerOutputRegressor
        per_output_classifier.PerOutputClassifier
    naive_bayes: bernoulli.BernoulliNB complement.ComplementNB gaussian.GaussianNB multinomial.MultinomialNB
    neighbors: ann.nn_vertex.Vertex ann.swinn.SWINN base.FunctionWrapper knn_classifier.KNNClassifier
        knn_regressor.KNNRegressor lazy.LazySearch
    optim: ada_bound.AdaBound ada_delta.AdaDelta ada_grad.AdaGrad ada_max.AdaMax adam.Adam ams_grad.AMSGrad
        average.Averager base.Optimizer ftrl.FTRLProximal initializers.Constant initializers.Normal initializers.Zeros
        losses.Absolute losses.BinaryFocalLoss losses.Cauchy losses.CrossEntropy losses.EpsilonInsensitiveHinge
        losses.Hinge losses.Huber losses.Log losses.Poisson losses.Quantile losses.Squared momentum.Momentum nadam.Nadam
        nesterov.NesterovMomentum newton.Newton rms_prop.RMSProp schedulers.Constant schedulers.InverseScaling
        schedulers.Optimal sgd.SGD
    preprocessing: feature_hasher.FeatureHasher gap_encoder.GapEncoder impute.Constant impute.PreviousImputer
        impute.StatImputer lda.LDA one_hot.OneHotEncoder ordinal.OrdinalEncoder pred_clipper.PredClipper
        random_projection.GaussianRandomProjector random_projection.SparseRandomProjector scale.AdaptiveStandardScaler
        scale.Binarizer scale.MaxAbsScaler scale.MinMaxScaler scale.Normalizer scale.RobustScaler scale.StandardScaler
        scale_target.TargetMinMaxScaler scale_target.TargetStandardScaler
    proba: beta.Beta gaussian.Gaussian gaussian.MultivariateGaussian multinomial.Multinomial
    reco: baseline.Baseline biased_mf.BiasedMF funk_mf.FunkMF normal.RandomNormal
    rules: amrules.AMRules amrules.AdaptiveRegressor amrules.MeanRegressor amrules.RegRule base.Literal
        base.NominalLiteral base.NumericLiteral
    sketch: counter.Counter heavy_hitters.HeavyHitters histogram.Bin histogram.Histogram n_unique.NUnique set.Set
    stats: auto_corr.AutoCorr base.Link chi_squared.ChiSquared count.Count cov.Cov entropy.Entropy ewcov.EWCov
        ewmean.EWMean ewvar.EWVar iqr.IQR iqr.RollingIQR kolmogorov_smirnov.KolmogorovSmirnov kolmogorov_smirnov._Node
        kurtosis.Kurtosis mad.MAD maximum.AbsMax maximum.Max maximum.RollingAbsMax maximum.RollingMax mean.BayesianMean
        mean.Mean minimum.Min minimum.RollingMin mode.Mode mode.RollingMode pearson.PearsonCorr ptp.PeakToPeak
        ptp.RollingPeakToPeak quantile.Quantile quantile.RollingQuantile sem.SEM shift.Shift skew.Skew summing.Sum
        var.Var
    time_series: holt_winters.HoltWinters metrics.HorizonAggMetric metrics.HorizonMetric snarimax.Differencer
        snarimax.SNARIMAX
    tree: base.Leaf extremely_fast_decision_tree.ExtremelyFastDecisionTreeClassifier
        hoeffding_adaptive_tree_classifier.HoeffdingAdaptiveTreeClassifier
        hoeffding_adaptive_tree_regressor.HoeffdingAdaptiveTreeRegressor
        hoeffding_tree_classifier.HoeffdingTreeClassifier hoeffding_tree_regressor.HoeffdingTreeRegressor
        isoup_tree_regressor.ISOUPTreeRegressor last_classifier.LASTClassifier losses.BinaryCrossEntropyLoss
        losses.SquaredErrorLoss mondrian.mondrian_tree.MondrianTree
        mondrian.mondrian_tree_classifier.MondrianTreeClassifier mondrian.mondrian_tree_nodes.MondrianBranch
        mondrian.mondrian_tree_nodes.MondrianBranchClassifier mondrian.mondrian_tree_nodes.MondrianBranchRegressor
        mondrian.mondrian_tree_nodes.MondrianLeaf mondrian.mondrian_tree_nodes.MondrianLeafClassifier
        mondrian.mondrian_tree_nodes.MondrianLeafRegressor mondrian.mondrian_tree_nodes.MondrianNode
        mondrian.mondrian_tree_nodes.MondrianNodeClassifier mondrian.mondrian_tree_nodes.MondrianNodeRegressor
        mondrian.mondrian_tree_regressor.MondrianTreeRegressor nodes.arf_htc_nodes.RandomLeafMajorityClass
        nodes.arf_htc_nodes.RandomLeafNaiveBayes nodes.arf_htc_nodes.RandomLeafNaiveBayesAdaptive
        nodes.arf_htr_nodes.RandomLeafAdaptive nodes.arf_htr_nodes.RandomLeafMean nodes.arf_htr_nodes.RandomLeafModel
        nodes.branch.NominalBinaryBranch nodes.branch.NominalMultiwayBranch nodes.branch.NumericBinaryBranch
        nodes.branch.NumericMultiwayBranch nodes.efdtc_nodes.EFDTLeafMajorityClass nodes.efdtc_nodes.EFDTLeafNaiveBayes
        nodes.efdtc_nodes.EFDTLeafNaiveBayesAdaptive nodes.efdtc_nodes.EFDTNominalBinaryBranch
        nodes.efdtc_nodes.EFDTNominalMultiwayBranch nodes.efdtc_nodes.EFDTNumericBinaryBranch
        nodes.efdtc_nodes.EFDTNumericMultiwayBranch nodes.et_nodes.ETLeafAdaptive nodes.et_nodes.ETLeafMean
        nodes.et_nodes.ETLeafModel nodes.hatc_nodes.AdaLeafClassifier nodes.hatc_nodes.AdaNomBinaryBranchClass
        nodes.hatc_nodes.AdaNomMultiwayBranchClass nodes.hatc_nodes.AdaNumBinaryBranchClass
        nodes.hatc_nodes.AdaNumMultiwayBranchClass nodes.hatr_nodes.AdaLeafRegAdaptive nodes.hatr_nodes.AdaLeafRegMean
        nodes.hatr_nodes.AdaLeafRegModel nodes.hatr_nodes.AdaNomBinaryBranchReg nodes.hatr_nodes.AdaNomMultiwayBranchReg
        nodes.hatr_nodes.AdaNumBinaryBranchReg nodes.hatr_nodes.AdaNumMultiwayBranchReg
        nodes.htc_nodes.LeafMajorityClass nodes.htc_nodes.LeafNaiveBayes nodes.htc_nodes.LeafNaiveBayesAdaptive
        nodes.htr_nodes.LeafAdaptive nodes.htr_nodes.LeafMean nodes.htr_nodes.LeafModel
        nodes.isouptr_nodes.LeafAdaptiveMultiTarget nodes.isouptr_nodes.LeafMeanMultiTarget
        nodes.isouptr_nodes.LeafModelMultiTarget nodes.last_nodes.LeafMajorityClassWithDetector
        nodes.last_nodes.LeafNaiveBayesAdaptiveWithDetector nodes.last_nodes.LeafNaiveBayesWithDetector
        nodes.sgt_nodes.SGTLeaf padded.PaddedBranch padded.PaddedLeaf
        split_criterion.gini_split_criterion.GiniSplitCriterion
        split_criterion.hellinger_distance_criterion.HellingerDistanceCriterion
        split_criterion.info_gain_split_criterion.InfoGainSplitCriterion
        split_criterion.intra_cluster_variance_reduction_split_criterion.IntraClusterVarianceReductionSplitCriterion
        split_criterion.variance_ratio_split_criterion.VarianceRatioSplitCriterion
        split_criterion.variance_reduction_split_criterion.VarianceReductionSplitCriterion
        splitter.ebst_splitter.EBSTNode splitter.ebst_splitter.EBSTSplitter splitter.exhaustive_splitter.ExhaustiveNode
        splitter.exhaustive_splitter.ExhaustiveSplitter splitter.gaussian_splitter.GaussianSplitter
        splitter.histogram_splitter.HistogramSplitter splitter.nominal_splitter_classif.NominalSplitterClassif
        splitter.nominal_splitter_reg.NominalSplitterReg splitter.qo_splitter.FeatureQuantizer
        splitter.qo_splitter.QOSplitter splitter.qo_splitter.Slot splitter.random_splitter.RegRandomSplitter
        splitter.sgt_quantizer.DynamicQuantizer splitter.sgt_quantizer.StaticQuantizer
        splitter.tebst_splitter.TEBSTSplitter stochastic_gradient_tree.SGTClassifier
        stochastic_gradient_tree.SGTRegressor stochastic_gradient_tree.StochasticGradientTree utils.BranchFactory
        utils.GradHess utils.GradHessMerit utils.GradHessStats
    utils: rolling.BaseRolling rolling.Rolling rolling.TimeRolling sorted_window.SortedWindow
    """,
)

#: Classes inside classes, so their names have dots. They are compared as a whole, never split and looked up.
RIVER_NESTED_CLASSES = _names(
    """
    cluster: denstream:DenStream.BufferItem textclust:TextClust.Distances textclust:TextClust.MicroCluster
        textclust:TextClust.TfContainer
    """,
)

#: Classes made from numbers, the compiled ones and subclasses of `deque`.
NUMERIC_CLASSES = _names(
    """
    _river_rust: drift.AdaptiveWindowing stats.RsEWMean stats.RsEWVar stats.RsIQR stats.RsKurtosis stats.RsPeakToPeak
        stats.RsQuantile stats.RsRollingIQR stats.RsRollingPRAUC stats.RsRollingQuantile stats.RsRollingROCAUC
        stats.RsSkew
    time_series: holt_winters.AdditiveLevel holt_winters.AdditiveSeason holt_winters.MultiplicativeLevel
        holt_winters.MultiplicativeSeason holt_winters.Trend
    """,
)

#: Classes that may be referred to (as a default factory, as an argument of a shim), and are not called by name.
TYPES = frozenset(
    {
        *(("builtins", kind.__name__) for kind in (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)),
        ("numbers", "Number"),
        ("numpy", "ndarray"),
        ("numpy.random._mt19937", "MT19937"),
        ("numpy.random.bit_generator", "SeedSequence"),
    }
)

#: Functions that may be referred to, and are not called while a payload is read.
FUNCTIONS = frozenset(
    {
        ("copy", "deepcopy"),
        *(("math", function) for function in ("exp", "expm1", "log", "log10", "log1p", "log2", "sqrt")),
        ("numpy", "array"),
        ("numpy", "ones"),
    }
) | _names(
    """
    _river_rust: vectordict.euclidean_distance_dict vectordict.euclidean_distance_tuple
    feature_extraction: vectorize.find_all_ngrams vectorize.remove_stop_words vectorize.strip_accents_unicode
        vectorize.tokenize_using_regex_pattern
    forest: online_extra_trees:ExtraTrees._detection_mode_all online_extra_trees:ExtraTrees._detection_mode_drop
        online_extra_trees:ExtraTrees._detection_mode_off
    metrics: mutual_info._average_arithmetic
    naive_bayes: gaussian:GaussianNB._make_gaussian
    tree: splitter.ebst_splitter:EBSTNode._update_estimator_multivariate
        splitter.ebst_splitter:EBSTNode._update_estimator_univariate
        splitter.nominal_splitter_reg:NominalSplitterReg._update_estimator_multivariate
        splitter.nominal_splitter_reg:NominalSplitterReg._update_estimator_univariate
    utils: math.minkowski_distance
    """,
)

#: Methods that objects keep bound to themselves or to another object: what `builtins.getattr` may fetch.
METHODS = frozenset({("random", "Random.gauss")}) | _names(
    """
    bandit: thompson:ThompsonSampling._clone_reward_obj_with_seed
    base: base:Base.clone
    drift: dummy:DummyDriftDetector._fixed_trigger dummy:DummyDriftDetector._random_trigger
        page_hinkley:PageHinkley._test_both page_hinkley:PageHinkley._test_decrease
        page_hinkley:PageHinkley._test_increase
    ensemble: bagging:LeveragingBaggingClassifier._leveraging_bag
        bagging:LeveragingBaggingClassifier._leveraging_bag_half
        bagging:LeveragingBaggingClassifier._leveraging_bag_me
        bagging:LeveragingBaggingClassifier._leveraging_bag_wt bagging:LeveragingBaggingClassifier._leveraging_subag
    feature_extraction: kernel_approx:RBFSampler._random_weights
    linear_model: pa:BasePA._calc_tau_0 pa:BasePA._calc_tau_1 pa:BasePA._calc_tau_2
    multiclass: occ:OutputCodeClassifier._next_code
    preprocessing: random_projection:GaussianRandomProjector._rand_gauss
        random_projection:SparseRandomProjector._rand_weights_for_feature scale_target:TargetMinMaxScaler._scale
        scale_target:TargetMinMaxScaler._unscale scale_target:TargetStandardScaler._scale
        scale_target:TargetStandardScaler._unscale
    tree: splitter.qo_splitter:Slot._update_estimator_multivariate
        splitter.qo_splitter:Slot._update_estimator_univariate
    """,
)

#: What `functools.partial` may hold, besides bound methods of `METHODS` and River's initializers.
PARTIAL_TARGETS = frozenset(
    {
        *(("builtins", kind.__name__) for kind in (float, int, tuple)),
        ("collections", "defaultdict"),
        ("copy", "deepcopy"),
        ("numpy", "array"),
        ("numpy", "ones"),
    }
) | _names(
    """
    feature_extraction: vectorize.find_all_ngrams vectorize.remove_stop_words vectorize.tokenize_using_regex_pattern
    linear_model: bayesian_lin_reg.BayesianLinearRegression
    sketch: histogram.Histogram
    stats: ewmean.EWMean ewvar.EWVar iqr.IQR maximum.RollingAbsMax maximum.RollingMax minimum.RollingMin
        quantile.Quantile var.Var
    utils: math.minkowski_distance rolling.Rolling
    """,
)
