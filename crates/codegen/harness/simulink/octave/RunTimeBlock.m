classdef RunTimeBlock < handle
% The object that Simulink hands to a Level-2 MATLAB S-function, as far as generated blocks use it. What they use beside it is an error.
properties
    NumInputPorts = 0
    NumOutputPorts = 0
    NumDialogPrms = 0
    NumDworks = 0
    DialogPrmsTunable = {}
    SampleTimes = []
    SimStateCompliance = ''
    InputPort = struct('Dimensions', {}, 'DatatypeID', {}, 'Complexity', {}, 'SamplingMode', {}, 'DirectFeedthrough', {}, 'Data', {})
    OutputPort = struct('Dimensions', {}, 'DatatypeID', {}, 'Complexity', {}, 'SamplingMode', {}, 'Data', {})
    Dwork = struct('Name', {}, 'Dimensions', {}, 'DatatypeID', {}, 'Complexity', {}, 'UsedAsDiscState', {}, 'Data', {})
    DialogPrm
    Methods = struct()
    Written = struct()
end
methods
    function self = RunTimeBlock(sample_time)
        self.DialogPrm = struct('Data', {sample_time});
    end
    function SetPreCompInpPortInfoToDynamic(self)
    end
    function SetPreCompOutPortInfoToDynamic(self)
    end
    function SetAccelRunOnTLC(self, is_on)
    end
    function RegBlockMethod(self, name, method)
        known = {'CheckParameters', 'PostPropagationSetup', 'Start', 'Outputs', 'Update', 'Terminate', 'WriteRTW'};
        assert(any(strcmp(name, known)), ['no method of a block is called ' name]);
        self.Methods.(name) = method;
    end
    function WriteRTWParam(self, kind, name, value)
        assert(any(strcmp(kind, {'string', 'matrix'})));
        self.Written.(name) = value;
    end
    % As Simulink: before a simulation, checks, sizes, and the start.
    function start(self)
        self.call('CheckParameters');
        assert(numel(self.DialogPrm) == self.NumDialogPrms);
        assert(numel(self.InputPort) == self.NumInputPorts && numel(self.OutputPort) == self.NumOutputPorts);
        self.call('PostPropagationSetup');
        assert(numel(self.Dwork) == self.NumDworks);
        self.call('Start');
        self.check();
    end
    function call(self, name)
        if isfield(self.Methods, name)
            method = self.Methods.(name);
            method(self);
        end
    end
    function step(self)
        self.call('Outputs');
        self.call('Update');
        self.check();
    end
    % Every value is of its port's class and size.
    function check(self)
        classes = {'double', 'single', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'logical'};
        for port = self.OutputPort
            assert(class(port.Data), classes{port.DatatypeID + 1});
            assert(numel(port.Data), port.Dimensions);
        end
        for work = self.Dwork
            assert(class(work.Data), classes{work.DatatypeID + 1});
        end
    end
end
end
